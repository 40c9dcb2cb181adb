module github.com/orbweaver/orbweaver/tools/mutants

go 1.26.0
