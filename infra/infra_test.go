// Package infra_test holds the Terraform files to what a linter would ask of them, since
// there may be none.
package infra_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// modules are the folders with Terraform files, each with its files as one text.
func modules(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, pattern := range []string{"aws/*/*.tf", "live/*/*.tf"} {
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
	if len(out) < 6 {
		t.Fatalf("only %d modules found", len(out))
	}
	return out
}

// block is one of "variable" or "output", as 'terraform fmt' leaves it.
var block = regexp.MustCompile(`(?ms)^(variable|output) "([a-z0-9_]+)" \{\n(.*?)^\}`)

// TestVariablesAndOutputs: each is described, each variable typed and used.
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
		if !strings.Contains(text, `version = "~> 5.100"`) || !strings.Contains(text, `required_version = ">= 1.5"`) {
			t.Errorf("%s does not say which versions it is for", dir)
		}
	}
	if found < 60 {
		t.Errorf("only %d variables and outputs found: the pattern misses them", found)
	}
}

// TestWildcards: rights are for named resources. What has a wildcard is listed here, with
// the reason beside it in the file.
func TestWildcards(t *testing.T) {
	allowed := []string{
		`mailboxes = "arn:${data.aws_partition.current.partition}:sqs:${local.region}:${local.account}:${var.name}-mailbox-?????"`,
		`objects = "${var.bucket_arn}/*"`,
		`index_objects = "${var.bucket_arn}/*/index/*"`,
		`index_records = ["*/index/*"]`,
		`rank_objects = ["${var.bucket_arn}/*/rank/*", "${var.bucket_arn}/*/ranks/*"]`,
		`rank_records = ["*/rank", "*/rank/*"]`,
		`Resource = "${aws_cloudwatch_log_group.function[each.key].arn}:*"`,
		`ArnLike = { "aws:SourceArn" = ["${local.rules}/${var.name}-feed-*", "${local.rules}/*/${var.name}-feed-*"] } # of the default event bus, and of others`,
		`events = ["s3:ObjectCreated:*"]`,
	}
	spaces := regexp.MustCompile(` +`)
	wild := regexp.MustCompile(`"[^"\n]*(\*|\?\?)[^"\n]*"`)
	seen := map[string]bool{}
	for dir, text := range modules(t) {
		for line := range strings.Lines(text) {
			line = strings.TrimSpace(spaces.ReplaceAllString(line, " "))
			prose := strings.HasPrefix(line, "#") || strings.HasPrefix(line, "says") || strings.HasPrefix(line, "alarm_description")
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

// TestFormat runs 'terraform fmt -check' where there is Terraform.
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
