// Package infra_test checks the Terraform files as a linter would, because there may be no linter.
package infra_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/naming"
)

// modules returns the folders with Terraform files, each with its files as one text.
func modules(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"aws/*/*.tf", "gcp/*/*.tf", "live/*/*.tf"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			out[filepath.Dir(f)] += string(b) + "\n"
		}
	}
	if len(out) < 10 {
		t.Fatalf("only %d modules found", len(out))
	}
	return out
}

// block matches a "variable" or "output" as 'terraform fmt' writes it.
var block = regexp.MustCompile(`(?ms)^(variable|output) "([a-z0-9_]+)" \{\n(.*?)^\}`)

// TestVariablesAndOutputs checks that each has a description, and that each variable has a type and is used.
func TestVariablesAndOutputs(t *testing.T) {
	found := 0
	for dir, text := range modules(t) {
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			found++
			kind, name, body := m[1], m[2], m[3]
			if !regexp.MustCompile(`(?m)^  description += ".+"$`).MatchString(body) {
				t.Errorf("%s: %s %s has no description", dir, kind, name)
			}
			if kind == "output" {
				continue
			}
			if !regexp.MustCompile(`(?m)^  type += `).MatchString(body) {
				t.Errorf("%s: variable %s has no type", dir, name)
			}
			rest := strings.Replace(text, m[0], "", 1)
			if !regexp.MustCompile(`\bvar\.` + name + `\b`).MatchString(rest) {
				t.Errorf("%s: variable %s is not used", dir, name)
			}
		}
		for _, m := range regexp.MustCompile(`\bvar\.([a-z0-9_]+)`).FindAllStringSubmatch(text, -1) {
			if !strings.Contains(text, `variable "`+m[1]+`" {`) {
				t.Errorf("%s: there is no variable %s", dir, m[1])
			}
		}
		version := `version = "~> 5.100"` // of the AWS provider
		if strings.Contains(dir, "gcp") {
			version = `version = "~> 6.50"`
		}
		if !strings.Contains(text, version) || !strings.Contains(text, `required_version = ">= 1.5"`) {
			t.Errorf("%s does not say which versions it is for", dir)
		}
	}
	if found < 120 {
		t.Errorf("only %d variables and outputs found: the pattern misses them", found)
	}
}

// TestWildcards checks that permissions are for named resources. Permissions with a wildcard are listed here;
// the file gives the reason of each.
func TestWildcards(t *testing.T) {
	allowed := []string{
		`mailboxes = "arn:${data.aws_partition.current.partition}:sqs:${local.region}:${local.account}:${var.name}-mailbox-?????"`,
		`objects = "${var.bucket_arn}/*"`,
		`runs = "${var.bucket_arn}/*/p?????/r*"`,
		`index_objects = "${var.bucket_arn}/*/index/*"`,
		`index_records = ["*/index/*"]`,
		`rank_objects = ["${var.bucket_arn}/*/rank/*", "${var.bucket_arn}/*/ranks/*"]`,
		`rank_records = ["*/rank", "*/rank/*"]`,
		`[for _ in var.vpc[*] : { Sid = "Network", Action = local.network, Resource = "*" }],`,
		`principal = "*"`, // of a public search page
		`Resource = "${aws_cloudwatch_log_group.function[each.key].arn}:*"`,
		`ArnLike = { "aws:SourceArn" = ["${local.rules}/${var.name}-feed-*", "${local.rules}/*/${var.name}-feed-*"] } # of the default event bus, and of others`,
		`events = ["s3:ObjectCreated:*"]`,
		`{ Sid = "Claims", Action = ["dynamodb:PutItem"], Resource = data.aws_dynamodb_table.records.arn, Condition = { "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["*/claims"] } } },`,
		`{ Sid = "Objects", Action = ["s3:GetObject"], Resource = "${data.aws_s3_bucket.objects.arn}/*" },`,
		`{ Sid = "Logs", Action = ["logs:CreateLogStream", "logs:PutLogEvents"], Resource = "${aws_cloudwatch_log_group.inbound.arn}:*" },`,
		`schedule = "* * * * *"`,
	}
	spaces := regexp.MustCompile(` +`)
	wild := regexp.MustCompile(`"[^"\n]*(\*|\?\?)[^"\n]*"`)
	seen := map[string]bool{}
	for dir, text := range modules(t) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(spaces.ReplaceAllString(line, " "))
			prose := strings.HasPrefix(line, "#") || strings.HasPrefix(line, "says") || strings.HasPrefix(line, "alarm_description") || strings.HasPrefix(line, "error_message")
			if prose || strings.Contains(line, "regex(") || !wild.MatchString(line) {
				continue
			}
			seen[line] = true
			if !slices.Contains(allowed, line) {
				t.Errorf("%s: a wildcard that is not listed: %s", dir, line)
			}
		}
	}
	for _, line := range allowed {
		if !seen[line] {
			t.Errorf("no longer there, take it off the list: %s", line)
		}
	}
}

// TestCoordinatorDeletesOnlyRuns compares the pattern of the permission to delete with the names of objects.
func TestCoordinatorDeletesOnlyRuns(t *testing.T) {
	text := modules(t)["aws/functions"]
	m := regexp.MustCompile(`(?m)^  runs = "\$\{var\.bucket_arn\}(/.*)"$`).FindStringSubmatch(text)
	if m == nil || !strings.Contains(text, `{ Sid = "Runs", Action = ["s3:DeleteObject"], Resource = local.runs }`) {
		t.Fatal("the coordinator has no right to delete runs")
	}
	pattern := regexp.MustCompile("^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(m[1])) + "$") // as IAM interprets it
	const crawl = "20261121-090719"
	for name, want := range map[string]bool{
		naming.Run(crawl, 7, 12, 3, 2):               true,
		naming.Run(crawl, 99999, 1e10, 1e8, 9):       true,
		naming.Commit(crawl, 7, 12, 3):               false,
		naming.WARC(crawl, 7, 3, 1, true):            false,
		naming.Seeds(crawl, nil):                     false,
		naming.Ranks(crawl, nil):                     false,
		naming.Dead(crawl, nil):                      false,
		naming.CDXJIndex(crawl):                      false,
		naming.Segment(crawl, 7, 1, nil):             false,
		naming.IndexManifest(crawl, 7, 1, nil):       false,
		naming.RankObject(crawl, 7, 1, "ranks", nil): false,
		naming.Request(crawl, nil):                   false,
		naming.Map(crawl, 1, nil):                    false,
		"lists/recrawl/urls.txt":                     false,
	} {
		if pattern.MatchString("/"+name) != want {
			t.Errorf("the coordinator may delete %s: %v", name, !want)
		}
	}
	if n := strings.Count(text, "s3:DeleteObject"); n != 3 {
		t.Errorf("%d functions may delete objects; they are coordinate, index and rank", n)
	}
}

// TestEverythingStartsTheAlias checks that all triggers start the alias: one that starts the function itself
// would miss a rollback.
func TestEverythingStartsTheAlias(t *testing.T) {
	allowed := []string{
		"function_name = aws_lambda_function.function[each.key].function_name", // of the alias itself
		"function_version = aws_lambda_function.function[each.key].version",
		"value = tomap({ for k, f in aws_lambda_function.function : k => f.version })",
		"value = { for k, f in aws_lambda_function.function : k => f.function_name }",
	}
	for line := range strings.Lines(modules(t)["aws/functions"]) {
		line = strings.Join(strings.Fields(line), " ")
		if strings.Contains(line, "aws_lambda_function.function") && !slices.Contains(allowed, line) {
			t.Errorf("this names a function, not its alias: %s", line)
		}
	}
}

// googlePlugins is the folder with the stand-in for Google's provider, which 'make gcp-check' fills.
const googlePlugins = "../.cache/checks/google/"

// TestPlans runs 'terraform test', which plans with a mocked provider.
func TestPlans(t *testing.T) {
	tf, err := exec.LookPath("terraform")
	if err != nil {
		t.Skip("SKIPPED: there is no terraform")
	}
	t.Run("aws", func(t *testing.T) {
		found, _ := filepath.Glob("/opt/*/registry.terraform.io/hashicorp/aws") // the pattern is good
		if len(found) == 0 && os.Getenv("TF_CLI_ARGS_init") == "" {
			t.Skip("SKIPPED: the AWS provider is not on this machine; TF_CLI_ARGS_init=-plugin-dir=FOLDER names a folder that has it")
		}
		plugins := ""
		if len(found) > 0 {
			plugins = strings.TrimSuffix(found[0], "registry.terraform.io/hashicorp/aws")
		}
		zips := t.TempDir()
		for _, f := range []string{"fetch", "coordinate", "intake", "index", "rank", "query"} {
			if err := os.WriteFile(filepath.Join(zips, f+".zip"), []byte(f), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		terraformTest(t, tf, "aws", plugins, "9 passed", "-var=zips="+zips)
	})
	t.Run("gcp", func(t *testing.T) {
		plugins, err := filepath.Abs(googlePlugins)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(plugins, "registry.terraform.io")); err != nil {
			t.Skip("SKIPPED: run 'make gcp-check'")
		}
		t.Setenv("GOOGLE_PROVIDER_TYPES", filepath.Join(plugins, "package", "lib"))
		terraformTest(t, tf, "gcp", plugins, "7 passed")
	})
}

// terraformTest tests a cloud's live folder in a copy of it.
func terraformTest(t *testing.T, tf, cloud, plugins, want string, vars ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{cloud, "live"} {
		if err := os.CopyFS(filepath.Join(dir, sub), only{os.DirFS(sub)}); err != nil {
			t.Fatal(err)
		}
	}
	init := []string{"init", "-input=false", "-no-color"}
	if plugins != "" {
		init = append(init, "-plugin-dir="+plugins)
	}
	for _, args := range [][]string{init, {"validate", "-no-color"}, append([]string{"test", "-no-color"}, vars...)} {
		cmd := exec.CommandContext(t.Context(), tf, args...)
		cmd.Dir = filepath.Join(dir, "live", cloud)
		cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE=", "CHECKPOINT_DISABLE=1", "TF_DATA_DIR=")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("terraform %s: %v\n%s", args[0], err, out)
		}
		if args[0] == "test" && !strings.Contains(string(out), want) {
			t.Errorf("not all of it was run:\n%s", out)
		}
	}
}

// only omits uncommitted files of a tree: state, settings and the provider.
type only struct{ fs.FS }

func (o only) ReadDir(name string) ([]fs.DirEntry, error) {
	list, err := fs.ReadDir(o.FS, name)
	return slices.DeleteFunc(list, func(e fs.DirEntry) bool {
		ext := filepath.Ext(e.Name())
		return !e.IsDir() && ext != ".tf" && ext != ".hcl" || strings.HasPrefix(e.Name(), ".") || e.Name() == "state.tf" || e.Name() == "backend.tf" || e.Name() == "terraform.tfstate.d"
	}), err
}

// TestFormat runs 'terraform fmt -check' if Terraform is installed.
func TestFormat(t *testing.T) {
	tf, err := exec.LookPath("terraform")
	if err != nil {
		if tf, err = exec.LookPath("tofu"); err != nil {
			t.Skip("SKIPPED: there is neither terraform nor tofu")
		}
	}
	cmd := exec.CommandContext(t.Context(), tf, "fmt", "-check", "-recursive", "-no-color")
	cmd.Env = append(os.Environ(), "TF_CLI_CONFIG_FILE=", "CHECKPOINT_DISABLE=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: not formatted:\n%s", err, out)
	}
}
