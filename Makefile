# What one can do here. Go, git and make are all it takes.
URL ?=
ARGS ?=
TAGS ?= $(filter gcp,$(CLOUD))
SEEDS ?= 200
EXPERIMENTS ?= webgather policies capability topics queue-assignment freshness redis-engine
FUZZTIME ?= 10s
DOCS ?= /usr/share/doc/linux-doc/html
ARCH ?= arm64
# Not from the environment, where some systems have the name of the host.
NAME = orbweaver
CLOUD ?= aws
PROFILE ?= infra/live/$(CLOUD)/$(NAME).json
functions = $(filter-out google,$(patsubst functions/%/main.go,%,$(wildcard functions/*/main.go)))
tool = go tool -modfile=tools/go.mod
lines-of = {{.ImportPath}}|{{.Dir}}|{{join .GoFiles " "}}|{{join .TestGoFiles " "}} {{join .XTestGoFiles " "}}
# Programs that check the files for own servers, each fetched or built once.
checks = .cache/checks
google = $(checks)/google
chart = $(checks)/bin/helm template orbweaver infra/selfhosted/helm --set 'image=i,platform=postgres://u@h/d?blobs=s3://b'
lab-tool = go tool -modfile=../tools/go.mod
# The laboratory in lab/ is a module of its own; its programs run from here.
lab = go build -C lab -o $(CURDIR)/bin/lab/$(notdir $(1)) ./$(1) && $(2) bin/lab/$(notdir $(1))
# The same with the profile of the program, which is measured as it ships.
profiled = go build -C lab -pgo=$(CURDIR)/cmd/orbweaver/default.pgo -o $(CURDIR)/bin/lab/bench ./bench && bin/lab/bench
# Status 3 says that the command was stopped, which is no error. The trap keeps the shell from dying of the same Ctrl-C.
interruptible = @trap : INT; $(1) || { s=$$?; [ $$s = 3 ] || exit $$s; }

export NAME CLOUD PROJECT REGION PARTITIONS MAILBOXES MEMORY INDEX SEARCH EMAIL STATE FROM AT TF_ARGS YES FORCE SINCE FUNCTION TERRAFORM
ifneq ($(origin ARCH),file) # given: else a deployment keeps its own
export ARCH
endif

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 17

build: ## build bin/orbweaver; TAGS=gcp links Google Cloud
	go build -tags '$(TAGS)' -o bin/orbweaver ./cmd/orbweaver

crawl: build ## crawl URL=https://example.org, or go on with the crawl; ARGS='--max-pages 100'
	$(call interruptible,bin/orbweaver crawl $(ARGS) $(URL))

demo: build ## crawl a made-up web on this machine and compare with the truth
	$(call interruptible,bin/orbweaver demo $(ARGS))

docsite: build ## crawl real documentation served by nginx, check and recrawl it; DOCS=FOLDER
	$(call lab,docsite) -docs $(DOCS) $(ARGS)

replay-test: build ## replay a crawl of real documentation with pywb in a browser, and compare pictures; needs nginx, chromium and Python, and the first time PyPI; DOCS=FOLDER
	test -d .cache/replay || { python3 -m venv .cache/replay && .cache/replay/bin/pip install --quiet playwright==1.65.2 pywb==2.10.0 pillow==13.0.0 || { rm -rf .cache/replay; exit 1; }; }
	$(call lab,docsite) -docs $(DOCS) -replay $(CURDIR)/.cache/replay/bin $(ARGS)

functions: ## build the cloud functions' zips, the same bytes each time; ARCH=arm64|amd64
	for f in $(functions); do GOOS=linux GOARCH=$(ARCH) CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags lambda.norpc,grpcnotrace -ldflags '-s -w' \
	-o bin/functions/$$f/bootstrap ./functions/$$f && go run ./infra/zip bin/functions/$$f.zip bin/functions/$$f/bootstrap || exit 1; done

gcp-function: ## build the program of Google Cloud's services, the same bytes each time, in a folder with its Dockerfile
	GOOS=linux GOARCH=amd64 CGO_ENABLED=0 go build -trimpath -buildvcs=false -tags gcp -ldflags '-s -w' -o bin/google/google ./functions/google
	cp infra/gcp/Dockerfile bin/google/

deploy: ## put it on AWS, or with CLOUD=gcp PROJECT= on Google Cloud: checks, builds, shows the plan and the cost, asks; NAME=, REGION=, PARTITIONS=, MAILBOXES=, MEMORY=, INDEX=, SEARCH=, EMAIL=, STATE=, TF_ARGS=, YES=1
	infra/cloud deploy

rollback: ## let the deployed functions run the release before; NAME=
	infra/cloud rollback

restore: ## make a deployment of what another one held at a moment; NAME=new, FROM=orbweaver, AT=2026-11-21T09:07:19Z
	infra/cloud restore

destroy: ## delete what was deployed, pages too; NAME=, CLOUD=, FORCE=1
	infra/cloud destroy

status: build ## how far the deployed crawl is; NAME=, CLOUD= or PROFILE=FILE
	bin/orbweaver status --platform $(PROFILE)

logs: ## the functions' logs of the last SINCE=10 minutes; NAME=, CLOUD=, FUNCTION=fetch|coordinate|intake|index|rank|query
	infra/cloud logs

localstack-test: ## run the AWS path on this machine, against emulators; ARGS='-fast -v'
	go build -o bin/localstack ./localstack && bin/localstack $(ARGS)

localstack-up: ## run it all on this machine for use by hand, until Ctrl-C
	go build -o bin/localstack ./localstack && bin/localstack -up

selfhosted-up: build ## run PostgreSQL, an object store and two workers on this machine for use by hand, until Ctrl-C
	go build -o bin/selfhosted ./infra/selfhosted && bin/selfhosted $(ARGS)

selfhosted-test: ## test the platforms of your own servers on PostgreSQL, NATS and an object store of this machine; needs Debian's postgresql or the like
	ORBWEAVER_TEST_SERVERS=1 go test -count=1 ./internal/drivers/postgres
	ORBWEAVER_TEST_SERVERS=1 go test -count=1 -run TestSelfHosted ./cmd/orbweaver

tables: ## run the queries of docs/howto/tables.md in DuckDB, and check a WACZ; needs python3, and the first time the network
	test -x $(checks)/tables/bin/wacz || { python3 -m venv $(checks)/tables && $(checks)/tables/bin/pip install -q duckdb wacz; }
	TABLE_TOOLS=$(CURDIR)/$(checks)/tables/bin go test ./cmd/orbweaver -count=1 -run TestTables

selfhosted-check: ## check the compose file and the Helm chart; needs python3, and the first time the network (helm is built, for minutes)
	test -x $(checks)/bin/kubernetes-validate || { python3 -m venv $(checks) && $(checks)/bin/pip install -q kubernetes-validate==1.37.0; }
	test -x $(checks)/bin/helm || GOBIN=$(CURDIR)/$(checks)/bin go install helm.sh/helm/v3/cmd/helm@v3.22.0
	test -x $(checks)/bin/cmd || GOBIN=$(CURDIR)/$(checks)/bin go install github.com/compose-spec/compose-go/v2/cmd@v2.16.2
	$(checks)/bin/cmd -no-interpolation infra/selfhosted/compose.yaml >/dev/null
	! docker compose version >/dev/null 2>&1 || POSTGRES_PASSWORD=p S3_SECRET_KEY=s docker compose -f infra/selfhosted/compose.yaml config --quiet
	$(checks)/bin/helm lint --strict --quiet infra/selfhosted/helm --set image=i,platform=aws://o
	for args in secret.pgPassword=p 'secret.existingSecret=s,search.enabled=true,serviceAccount.create=true,worker.args={--steps,8}'; do \
	$(chart) --set "$$args" >$(checks)/chart.yaml && $(checks)/bin/kubernetes-validate --strict $(checks)/chart.yaml || exit 1; done
	! $(chart) --set secret.pgPassword=p,worker.replicaz=3 2>/dev/null || { echo 'a misspelt value is not refused'; exit 1; }

ui-test: ## use every page of 'orbweaver ui' in a browser; needs chromium and Python, and the first time PyPI; SHOTS=FOLDER keeps pictures
	command -v chromium || command -v chromium-browser || command -v google-chrome || { echo "there is no chromium: install it, as in 'apt-get install chromium'"; exit 1; }
	test -d .cache/ui || { python3 -m venv .cache/ui && .cache/ui/bin/pip install --quiet playwright==1.65.2 || { rm -rf .cache/ui; exit 1; }; }
	ORBWEAVER_UI_PYTHON=$(CURDIR)/.cache/ui/bin/python ORBWEAVER_UI_SHOTS=$(if $(SHOTS),$(abspath $(SHOTS))) go test -count=1 -v -run TestUIInBrowser ./cmd/orbweaver

gcp-test: ## vet and test the platform and the functions on Google Cloud, on fakes within the tests
	go vet -tags gcp ./internal/drivers/... ./internal/service ./functions/google ./cmd/orbweaver
	go test -vet=off -tags gcp ./internal/drivers/gcp/... ./functions/google
	go test -vet=off -tags gcp -run 'TestOpen|TestGoogleCloudCrawl' ./internal/drivers ./internal/service

gcp-check: ## check the Terraform of Google Cloud against the arguments of its provider; needs terraform, and the first time npm and the network
	test -d $(google)/package || { mkdir -p $(google) && npm pack --silent --ignore-scripts --pack-destination $(google) @cdktf/provider-google@16.12.1 && \
	tar -xzf $(google)/cdktf-provider-google-16.12.1.tgz -C $(google); }
	GOWORK=off go build -C infra/gcp/schema -o $(CURDIR)/$(google)/registry.terraform.io/hashicorp/google/6.50.0/$$(go env GOOS)_$$(go env GOARCH)/terraform-provider-google_v6.50.0
	go test -count=1 -v -run TestPlans/gcp ./infra

test: ## vet, and run all tests
	go vet ./... && go test -vet=off -p $$((2 * $$(getconf _NPROCESSORS_ONLN))) ./... # at once: for much of their time tests wait

lab-test: ## vet the laboratory, and run its tests
	cd lab && go vet ./... && go test -vet=off ./...

race: ## run all tests with the race detector
	go test -race ./...

lint: ## run the linters of .golangci.yml, and look for dead code (the first time they are built, for minutes)
	$(tool) golangci-lint run --allow-parallel-runners ./...
	cd lab && $(lab-tool) golangci-lint run --allow-parallel-runners --config ../.golangci.yml ./...
	dead=$$(GOWORK=$(CURDIR)/tools/go.work $$($(tool) -n deadcode) -test ./... ./lab/...) && { test -z "$$dead" || { echo "$$dead"; exit 1; }; }

check: ## all that must be green: gofmt, vet, tests, linters, race detector
	! gofmt -l . | grep . && $(MAKE) test lint race

simulate: ## simulate crawls with faults, SEEDS=200 of them; ARGS='-first 201 -shrink'
	$(call interruptible,$(call lab,cmd/simulate) -seeds $(SEEDS) $(ARGS))

plants: ## plant bugs into the core, for minutes: the simulation must find each; SEEDS=200, ARGS='-only fence'
	$(call lab,plants,nice) -seeds $(SEEDS) $(ARGS)

mutants: ## change the core in thousands of small ways, for hours: its tests must notice 80% of them; ARGS='-packages partition -sample 400 -list'
	$(call lab,mutants) $(ARGS)

fuzz: ## run each fuzz test for FUZZTIME=10s
	@grep -ro --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed 's|/[^/]*:func | |' | while read -r dir fuzz; do \
	go test $$dir -run='^$$' -fuzz="^$$fuzz\$$" -fuzztime=$(FUZZTIME) || exit 1; done

bench: ## measure against loaders that know all URLs, for minutes; ARGS='-web W2 -against BINARY'
	$(profiled) $(ARGS)

profile: ## print what each stage costs: CPU and allocations per page; ARGS='-web W1G,W2'
	$(profiled) -stages -web W1 $(ARGS)

bench-quick: ## the same on small webs, to see that it works
	$(profiled) -quick $(ARGS)

bench-million: ## measure a crawl of a million small pages of 1,000 hosts in one folder, and fsck of it, for minutes
	$(profiled) -web million -rounds 1 $(ARGS)

pgo: ## record the profile by which the compiler optimizes the program, for minutes
	go build -C lab -pgo=off -o $(CURDIR)/bin/lab/bench ./bench && bin/lab/bench -web W1,W1G,plain,W1T,W2 -rounds 1 -cpuprofile .cache/pgo
	go tool pprof -proto .cache/pgo/*-crawl@4.cpu.pprof >cmd/orbweaver/default.pgo

bench-frontier: ## measure the frontier's time and memory with 1,000,000 known URLs
	go test ./internal/frontier -count=1 -v -run='^TestFigures$$' -figures

experiments: ## make the measurements of papers again, for half an hour; EXPERIMENTS=policies
	@for name in $(EXPERIMENTS); do $(call lab,cmd/experiment) $$name -out docs/experiments $(ARGS) || exit 1; done

speedup: build ## measure how much faster several workers crawl than one, on PostgreSQL, for minutes; ARGS='-quick -csv FILE'
	$(call lab,speedup) $(ARGS)

peers: build ## crawl the same webs with other crawlers too, where they are installed, for 40 minutes; it serves at port 80; ARGS='-webs fast'
	$(call lab,peers) $(ARGS)

peers-install: ## install six other crawlers into .cache/peers, from the registries of Python, Node.js, Go, Rust and Java
	lab/peers/programs/install.sh .cache/peers

picture = chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --no-first-run --user-data-dir=.cache/chromium

recordings: build ## make the pictures of the documents, from a crawl on this machine; needs script and chromium
	rm -rf .cache/recordings
	$(call lab,recordings) .cache/recordings docs/recordings/live.svg
	bin/orbweaver search --data .cache/recordings --serve 127.0.0.1:8090 & trap "kill $$!" EXIT; sleep 3; \
	$(picture) --window-size=860,520 --screenshot=docs/recordings/search.png 2>/dev/null 'http://127.0.0.1:8090/?q=crash+lease+"next+step"'
	bin/orbweaver demo --quiet --data .cache/recordings/demo
	bin/orbweaver ui --data .cache/recordings/demo --listen 127.0.0.1:8090 & trap "kill $$!" EXIT; sleep 3; \
	$(picture) --window-size=1000,620 --screenshot=docs/recordings/ui.png http://127.0.0.1:8090/ 2>/dev/null; \
	$(picture) --window-size=1000,480 --screenshot=docs/recordings/ui-links.png http://127.0.0.1:8090/report 2>/dev/null

vuln: ## look for known vulnerabilities in what the code calls; needs the network, or ARGS='-db file:///DATABASE'
	$(tool) govulncheck $(ARGS) ./...

cover: ## print the coverage by function
	mkdir -p .cache && go test -coverprofile=.cache/cover.out ./... && go tool cover -func=.cache/cover.out

# Product: all that ./cmd/orbweaver and ./functions/... are built from. Support: what tests and the emulator run need beside it.
lines: ## count the lines of code by package, tests apart, without blank lines and comments
	@product=$$(go list -deps ./cmd/orbweaver ./functions/... | grep '^github.com/orbweaver/'); \
	{ go list -f '$(lines-of)' ./...; go list -C lab -f '$(lines-of)' ./...; } | while IFS='|' read -r path dir code tests; do \
	count() { (cd "$$dir" && cat /dev/null $$1 | grep -cvE '^[[:space:]]*(//.*)?$$'); }; \
	part=support; case $$path in */orbweaver/lab/*) part=laboratory;; esac; \
	case " $$(echo $$product) " in *" $$path "*) part=product;; esac; \
	printf '%-11s%7d %7d  %s\n' $$part "$$(count "$$code")" "$$(count "$$tests")" "$${dir#$(CURDIR)/}"; done | sort -k1,1 -k4 | \
	awk '{ print; code[$$1] += $$2; tests[$$1] += $$3; n[$$1]++ } END { for (p in code) printf "%-11s%7d %7d  in %d packages\n", p, code[p], tests[p], n[p] | "sort" }'

clean: ## remove what was built here
	rm -rf bin .cache

.DEFAULT_GOAL := help
.PHONY: help build crawl demo docsite replay-test functions gcp-function deploy rollback restore destroy status logs localstack-test localstack-up selfhosted-up selfhosted-test selfhosted-check tables ui-test gcp-test gcp-check test lab-test race lint check simulate plants mutants fuzz bench profile bench-quick bench-million pgo bench-frontier experiments speedup peers peers-install recordings vuln cover lines clean
