package infra_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// stub replaces each program that infra/cloud calls. It appends its name and arguments to
// the file "calls" and prints a file of the folder "says". If the folder "fails" has a file
// of that name, it prints that one and fails.
const stub = `#!/bin/sh
name=$(basename "$0")
verb=$1
case $1 in -chdir=*) shift; verb=$1 ;; esac
echo "$name $*" >>"$TREE/calls"
test "$TF_WORKSPACE" && echo "in $TF_WORKSPACE" >>"$TREE/calls"
if test -e "$TREE/fails/$name-$verb"; then cat "$TREE/fails/$name-$verb" >&2; exit 1; fi
test "$verb" = output && verb=output-$3
if test -e "$TREE/says/$name-$verb"; then cat "$TREE/says/$name-$verb"; fi
test "$verb" != output-settings || test -e "$TREE/says/$name-$verb"
`

// tree is a copy of infra/cloud with stubs of the programs that it calls.
type tree struct {
	*testing.T
	dir string
}

func newTree(t *testing.T) *tree {
	t.Helper()
	for _, need := range []string{"bash", "sed", "diff", "cmp"} {
		if _, err := exec.LookPath(need); err != nil {
			t.Skipf("SKIPPED: there is no %s", need)
		}
	}
	r := &tree{t, t.TempDir()}
	script, err := os.ReadFile("cloud")
	if err != nil {
		t.Fatal(err)
	}
	r.write("infra/cloud", string(script))
	for _, name := range []string{"path/terraform", "path/go", "path/make", "bin/account", "bin/orbweaver"} {
		r.write(name, stub)
	}
	r.write("infra/live/aws/main.tf", "")
	r.write("says/terraform-version", "Terraform v1.11.4\non linux_amd64\n")
	r.write("says/account-whoami", "111122223333 eu-central-1\n")
	r.write("says/terraform-output-releases", `[{"fetch":"2"},{"fetch":"1"}]`)
	r.write("says/terraform-output-profile", `{"functions": {"query": "orbweaver-query"}, "region": "eu-central-1"}`)
	r.write("says/terraform-output-search_page", "public")
	r.write("says/terraform-output-bucket", "bucket-of-it")
	r.write("says/terraform-output-table", "orbweaver")
	r.write("says/terraform-show", "  + max_concurrency = 3\n")
	return r
}

func (r *tree) write(name, text string) {
	r.Helper()
	name = filepath.Join(r.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		r.Fatal(err)
	}
}

func (r *tree) read(name string) string {
	b, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(name)))
	if err != nil {
		return ""
	}
	return string(b)
}

// run runs the script and returns its output and the programs that it called.
func (r *tree) run(verb string, env ...string) (out string, calls []string, err error) {
	r.Helper()
	r.write("calls", "")
	cmd := exec.CommandContext(r.Context(), "bash", filepath.Join(r.dir, "infra", "cloud"), verb)
	cmd.Env = append([]string{"TREE=" + r.dir, "YES=1", "PATH=" + filepath.Join(r.dir, "path") + ":" + os.Getenv("PATH")}, env...)
	b, err := cmd.CombinedOutput()
	return string(b), strings.Split(strings.TrimSpace(r.read("calls")), "\n"), err
}

// call returns the first call with that prefix and its index, or "" and -1.
func call(calls []string, prefix string) (string, int) {
	i := slices.IndexFunc(calls, func(c string) bool { return strings.HasPrefix(c, prefix) })
	if i < 0 {
		return "", i
	}
	return calls[i], i
}

// TestChecksComeFirst checks that nothing is built without Terraform, its provider or credentials.
func TestChecksComeFirst(t *testing.T) {
	for failing, want := range map[string]string{
		"fails/terraform-init":   "It needs its registry",
		"fails/account-whoami":   "no credentials",
		"says/terraform-version": "is older than 1.5",
		"fails/account-state":    "no bucket",
	} {
		r := newTree(t)
		r.write(failing, map[string]string{"fails/account-whoami": "no credentials", "fails/account-state": "no bucket"}[failing])
		if failing == "says/terraform-version" {
			r.write(failing, "Terraform v1.4.7\n")
		}
		out, calls, err := r.run("deploy")
		if _, made := call(calls, "make"); err == nil || made >= 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q\n%s", failing, err, calls, out)
		}
	}
	r := newTree(t)
	out, calls, err := r.run("deploy")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	last := -1
	for _, step := range []string{"terraform version", "terraform init -input=false -backend=false", "go build -o bin/account", "account whoami", "account state",
		"terraform init -input=false -reconfigure", "terraform workspace select -or-create orbweaver", "make --no-print-directory build functions ARCH=arm64",
		"terraform plan", "orbweaver estimate --cloud aws --partitions 16 --max-concurrency 3 ", "terraform apply", "account grant orbweaver-query public"} {
		_, i := call(calls, step)
		if i <= last {
			t.Errorf("%s: call %d, after %d\n%s", step, i, last, strings.Join(calls, "\n"))
		}
		last = i
	}
}

// TestSettingsAreRemembered deploys with settings, and again on the same machine and on another one.
func TestSettingsAreRemembered(t *testing.T) {
	r := newTree(t)
	const file = "infra/live/aws/orbweaver.tfvars"
	deploy := func(want string, env ...string) string {
		t.Helper()
		out, calls, err := r.run("deploy", env...)
		plan, i := call(calls, "terraform plan")
		if got := r.read(file); err != nil || got != want || !strings.Contains(plan, "-var-file orbweaver.tfvars.draft") {
			t.Fatalf("%v, settings %q, %s\n%s", err, got, plan, out)
		}
		if all := strings.Join(calls[i:], "\n"); !strings.Contains(all, "-var settings="+strings.TrimSpace(want)) {
			t.Errorf("the state does not get the settings: %s", all)
		}
		r.write("says/terraform-output-settings", r.read(file))
		return out
	}
	const all = "search_page = \"iam\"\narchitecture = \"x86_64\"\npartitions = 64\n"
	deploy("partitions = 32\nsearch_page = \"iam\"\n", "PARTITIONS=32", "SEARCH=iam")
	deploy(all, "PARTITIONS=64", "ARCH=amd64")
	deploy(all)
	if err := os.Remove(filepath.Join(r.dir, file)); err != nil { // another machine
		t.Fatal(err)
	}
	deploy(all)
	if _, calls, _ := r.run("deploy"); !slices.Contains(calls, "make --no-print-directory build functions ARCH=amd64") {
		t.Errorf("the functions are built for another machine than before: %q", calls)
	}
	// Settings that are not applied are not remembered.
	r.write("fails/terraform-plan", "64 are too many")
	if _, _, err := r.run("deploy", "PARTITIONS=5000"); err == nil || r.read(file) != all {
		t.Errorf("%v: a plan that failed has left %q", err, r.read(file))
	}
	if err := os.Remove(filepath.Join(r.dir, "fails", "terraform-plan")); err != nil {
		t.Fatal(err)
	}
	// Another machine has deployed other settings. They count, unless the local settings were changed too.
	r.write("says/terraform-output-settings", "partitions = 128\n")
	if out := deploy("partitions = 128\n"); strings.Contains(out, "differs") {
		t.Errorf("nothing differs: %s", out)
	}
	r.write(file, "partitions = 128\nalarms = false\n")
	if out := deploy("partitions = 128\nalarms = false\n"); !strings.Contains(out, "> alarms = false") {
		t.Errorf("changes by hand are not shown: %s", out)
	}
	r.write(file, "partitions = [\n64]\n")
	if out, _, err := r.run("deploy", "PARTITIONS=8"); err == nil || !strings.Contains(out, "change partitions there") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestState checks that the state is in a bucket, unless it is on this machine already or STATE=local is set.
func TestState(t *testing.T) {
	const file, here = "infra/live/aws/state.tf", "infra/live/aws/terraform.tfstate.d/orbweaver/terraform.tfstate"
	r := newTree(t)
	deploy := func(env ...string) (out string, calls []string) {
		t.Helper()
		out, calls, err := r.run("deploy", env...)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return out, calls
	}
	deploy()
	for _, want := range []string{`bucket = "orbweaver-state-111122223333-eu-central-1"`, `region = "eu-central-1"`, `use_lockfile = true`} {
		if got := r.read(file); !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if deploy("STATE=local"); r.read(file) != "" {
		t.Error("STATE=local: the state is in a bucket")
	}
	r.write(here, "{}")
	if out, _ := deploy(); r.read(file) != "" || !strings.Contains(out, "STATE=remote moves it") {
		t.Errorf("a state that is here is not used\n%s", out)
	}
	_, calls := deploy("STATE=remote")
	if _, i := call(calls, "terraform state push"); i < 0 || r.read(file) == "" || r.read(here) != "" || r.read(here+".moved") == "" {
		t.Errorf("the state was not moved: %q", calls)
	}
	r.write("infra/live/aws/backend.tf", "")
	if deploy(); r.read(file) != "" {
		t.Error("a backend that somebody wrote is not used")
	}
	r = newTree(t)
	r.write("says/terraform-version", "OpenTofu v1.9.0\n")
	if deploy(); strings.Contains(r.read(file), "use_lockfile") {
		t.Error("1.9 does not know use_lockfile")
	}
}

func TestRollbackAndRestore(t *testing.T) {
	r := newTree(t)
	out, calls, err := r.run("rollback")
	if _, i := call(calls, `account rollback orbweaver [{"fetch":"2"},{"fetch":"1"}]`); err != nil || i < 0 {
		t.Errorf("rollback: %v, %q\n%s", err, calls, out)
	}
	if _, built := call(calls, "make"); built >= 0 {
		t.Error("a rollback builds something")
	}
	for _, env := range [][]string{nil, {"NAME=second"}, {"NAME=second", "FROM=orbweaver"}, {"FROM=orbweaver", "AT=2026-11-21T09:07:19Z"}} {
		if out, calls, err := r.run("restore", env...); err == nil || len(calls) > 1 {
			t.Errorf("restore %v: %v, %q\n%s", env, err, calls, out)
		}
	}
	r.write("says/terraform-output-settings", "bucket = \"mine\"\npartitions = 64\n")
	out, calls, err = r.run("restore", "NAME=second", "FROM=orbweaver", "AT=2026-11-21T09:07:19Z")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	last := -1
	for _, step := range []string{"terraform output -raw table", "in orbweaver", "make --no-print-directory build", "account restore-table orbweaver second 2026-11-21T09:07:19Z", "terraform import",
		"terraform apply -input=false -auto-approve", "account restore-bucket bucket-of-it bucket-of-it 2026-11-21T09:07:19Z", "terraform plan", "terraform apply -input=false -parallelism=30"} {
		_, i := call(calls, step)
		if i <= last {
			t.Errorf("%s: call %d, after %d\n%s", step, i, last, strings.Join(calls, "\n"))
		}
		last = i
	}
	if got := r.read("infra/live/aws/second.tfvars"); got != "partitions = 64\n" {
		t.Errorf("the settings of the restored deployment: %q", got)
	}
}

// newGoogleTree is a tree for CLOUD=gcp. The program and its Dockerfile are built already.
func newGoogleTree(t *testing.T) *tree {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("SKIPPED: there is no git")
	}
	r := newTree(t)
	script, err := os.ReadFile("gcp/cloud.sh")
	if err != nil {
		t.Fatal(err)
	}
	r.write("infra/gcp/cloud.sh", string(script))
	r.write("path/gcloud", stub)
	r.write("infra/live/gcp/main.tf", "")
	r.write("bin/google/google", "a program")
	r.write("bin/google/Dockerfile", "FROM scratch")
	r.write("says/gcloud-artifacts", "sha256:0123")
	r.write("says/gcloud-config", "(unset)")
	r.write("says/terraform-output-profile", `{"platform": "gcp://my-project?bucket=b", "project": "my-project", "region": "europe-west1"}`)
	return r
}

const googleEnv, googleProject, googleRegion = "CLOUD=gcp", "PROJECT=my-project", "REGION=europe-west1"

// TestGoogleChecksComeFirst checks that nothing is built without a project, a region, credentials or a state.
func TestGoogleChecksComeFirst(t *testing.T) {
	for failing, want := range map[string]string{
		"terraform-init":  "hashicorp/google",
		"gcloud-projects": "cannot read the project my-project",
		"gcloud-auth":     "application-default login",
		"gcloud-storage":  "for the state cannot be created",
	} {
		r := newGoogleTree(t)
		r.write("fails/"+failing, "")
		out, calls, err := r.run("deploy", googleEnv, googleProject, googleRegion)
		if _, made := call(calls, "make"); err == nil || made >= 0 || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %q\n%s", failing, err, calls, out)
		}
	}
	for want, env := range map[string][]string{
		"PROJECT=my-project":     {googleEnv, googleRegion},
		"REGION=europe-west1":    {googleEnv, googleProject},
		"are for AWS":            {googleEnv, googleProject, googleRegion, "EMAIL=me@example.org"},
		"must be aws or gcp":     {"CLOUD=azure"},
		"FORCE=1 does it":        {googleEnv, googleProject, googleRegion, "TEST=destroy"},
		"CLOUD=gcp has no resto": {googleEnv, "TEST=restore"},
	} {
		verb := "deploy"
		if last, ok := strings.CutPrefix(env[len(env)-1], "TEST="); ok {
			verb = last
		}
		if out, calls, err := newGoogleTree(t).run(verb, env...); err == nil || !strings.Contains(out, want) {
			t.Errorf("%q: %v, %q\n%s", env, err, calls, out)
		}
	}
}

// TestGoogleDeploy deploys twice and destroys.
func TestGoogleDeploy(t *testing.T) {
	r := newGoogleTree(t)
	r.write("fails/gcloud-firestore", "there is no database")
	out, calls, err := r.run("deploy", googleEnv, googleProject, googleRegion, "PARTITIONS=64")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	last := -1
	for _, step := range []string{"terraform version", "terraform init -input=false -backend=false", "gcloud projects describe my-project", "gcloud auth application-default",
		"gcloud storage buckets describe gs://orbweaver-state-my-project", "terraform init -input=false -reconfigure", "terraform workspace select -or-create orbweaver",
		"gcloud services enable run.googleapis.com cloudtasks.googleapis.com", "gcloud firestore databases describe", "make --no-print-directory build gcp-function TAGS=gcp",
		"gcloud artifacts repositories describe orbweaver", "gcloud artifacts docker images describe", "terraform plan", "orbweaver estimate --cloud gcp --partitions 16 --max-concurrency 3 ", "terraform apply"} {
		_, i := call(calls, step)
		if i <= last {
			t.Errorf("%s: call %d, after %d\n%s", step, i, last, strings.Join(calls, "\n"))
		}
		last = i
	}
	all := strings.Join(calls, "\n")
	for _, want := range []string{"-var project=my-project", "-var image=europe-west1-docker.pkg.dev/my-project/orbweaver/google@sha256:0123"} {
		if !strings.Contains(all, want) {
			t.Errorf("the plan has no %s:\n%s", want, all)
		}
	}
	if strings.Contains(all, "account ") || strings.Contains(all, "-var releases") || strings.Contains(all, "gcloud builds") {
		t.Errorf("calls of AWS, or an image that is there was built again:\n%s", all)
	}
	const settings = "partitions = 64\ncreate_database = true\n"
	if got := r.read("infra/live/gcp/orbweaver.tfvars"); got != settings {
		t.Errorf("settings: %q", got)
	}
	if got := r.read("infra/live/gcp/state.tf"); !strings.Contains(got, `backend "gcs"`) || !strings.Contains(got, `bucket = "orbweaver-state-my-project"`) {
		t.Errorf("state: %s", got)
	}
	if got := r.read("infra/live/gcp/orbweaver.json"); !strings.Contains(got, "gcp://my-project") {
		t.Errorf("profile: %s", got)
	}

	// Project and region are those of the profile, and the database is still created by this deployment.
	if err := os.Remove(filepath.Join(r.dir, "fails", "gcloud-firestore")); err != nil {
		t.Fatal(err)
	}
	r.write("says/terraform-output-settings", settings)
	r.write("says/terraform-show", "  # module.queues.google_pubsub_topic.mailbox[3] will be destroyed\n")
	if out, _, err := r.run("deploy", googleEnv); err == nil || !strings.Contains(out, "FORCE=1 does it") {
		t.Errorf("a mailbox is deleted: %v\n%s", err, out)
	}
	out, calls, err = r.run("destroy", googleEnv, "FORCE=1")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	_, guard := call(calls, "terraform apply -input=false -auto-approve")
	_, gone := call(calls, "terraform destroy")
	_, records := call(calls, "gcloud firestore bulk-delete --collection-ids=orbweaver --database=(default) --project my-project")
	if guard < 0 || gone < guard || records < gone || r.read("infra/live/gcp/orbweaver.json") != "" {
		t.Errorf("destroy: %q", calls)
	}
}
