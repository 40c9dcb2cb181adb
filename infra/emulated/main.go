// Command emulated deploys infra/live/aws to emulators on this machine, checks what a second plan would change,
// and destroys the deployment:
//
//	go run ./infra/emulated [-name NAME] [-work DIR] [-var KEY=JSON]... apply | account | plan-again | destroy | all
//
// The verb account plans the resources that emulators lack, as for an account, and writes the functions'
// settings for recursive loops to NAME.chains.json.
//
// The emulators must be running. AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_LAMBDA and so on name their addresses
// (infra/README.md has the list). Addresses that are not on loopback are refused, so no account can be reached
// by mistake. The Terraform files are copied to the work folder, where the state and the profile file NAME.json
// are kept between the verbs.
//
// Exit status: 0 done, 1 an error or an unexpected change in the second plan, 2 wrong use, 3 Terraform or its
// provider is missing and cannot be downloaded.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// errMissing is wrapped by errors that say what is not installed.
var errMissing = errors.New("not installed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	status := 1
	err := run(ctx, os.Args[1:], os.Stdout)
	switch {
	case err == nil || errors.Is(err, flag.ErrHelp):
		return
	case errors.Is(err, errUsage):
		status = 2
	case errors.Is(err, errMissing):
		status = 3
	}
	fmt.Fprintln(os.Stderr, "emulated: "+err.Error())
	os.Exit(status)
}

var errUsage = errors.New("wrong use")

// deployment is an emulated deployment.
type deployment struct {
	name      string
	work      string // the copy of infra/ with the state
	terraform string
	zips      string
	vars      map[string]any
	moto      string // endpoint of the emulator that holds the functions
	region    string
	env       []string // of terraform
	out       io.Writer
}

func run(ctx context.Context, args []string, out io.Writer) error {
	d := &deployment{out: out, terraform: cmp.Or(os.Getenv("TERRAFORM"), "terraform"), vars: map[string]any{}}
	flags := flag.NewFlagSet("emulated", flag.ContinueOnError)
	flags.StringVar(&d.name, "name", "orbweaver", "`name` of the deployment")
	flags.StringVar(&d.work, "work", filepath.Join(".cache", "emulated"), "`folder` for the copy of the Terraform files, and the state")
	flags.StringVar(&d.zips, "zips", filepath.Join("bin", "functions"), "`folder` of the functions' zips")
	timeout := flags.Duration("timeout", 5*time.Minute, "the longest that a verb may take")
	flags.Func("var", "a Terraform variable, `KEY=JSON`", func(s string) error {
		key, text, _ := strings.Cut(s, "=")
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return fmt.Errorf("value of %s: %w", key, err)
		}
		d.vars[key] = v
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return errors.Join(errUsage, err)
	}
	verbs := map[string][]func(context.Context) error{
		"apply":      {d.apply},
		"account":    {d.account},
		"plan-again": {d.planAgain},
		"destroy":    {d.destroy},
		"all":        {d.apply, d.account, d.planAgain, d.destroy},
	}
	steps, ok := verbs[flags.Arg(0)]
	if !ok || flags.NArg() != 1 {
		return fmt.Errorf("%w: one of apply, account, plan-again, destroy and all is needed", errUsage)
	}
	if err := d.prepare(); err != nil {
		return err
	}
	var errs error
	for i, step := range steps {
		if errs != nil && i < len(steps)-1 {
			continue // the last step still destroys the deployment
		}
		ctx, cancel := context.WithTimeout(ctx, *timeout)
		errs = errors.Join(errs, step(ctx))
		cancel()
	}
	return errs
}

// prepare finds the endpoints and makes paths absolute.
func (d *deployment) prepare() (err error) {
	if d.env, err = environment(os.Environ()); err != nil {
		return err
	}
	d.moto = endpoint(d.env, "LAMBDA")
	d.region = get(d.env, "AWS_REGION")
	for _, p := range []*string{&d.work, &d.zips} {
		if *p, err = filepath.Abs(*p); err != nil {
			return err
		}
	}
	if _, err := exec.LookPath(d.terraform); err != nil {
		return fmt.Errorf("%s is %w: get it from developer.hashicorp.com/terraform, or OpenTofu and TERRAFORM=tofu", d.terraform, errMissing)
	}
	return nil
}

// plugins returns a folder of this machine that has the AWS provider, laid out as a mirror:
// one that Terraform searches by itself, or one below /opt. Without one it returns "", and
// Terraform downloads the provider.
func plugins() string {
	const provider = "registry.terraform.io/hashicorp/aws"
	for _, pattern := range []string{"/opt/*", "/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins"} {
		found, _ := filepath.Glob(filepath.Join(pattern, provider)) // the patterns are good
		if len(found) > 0 {
			return strings.TrimSuffix(found[0], provider)
		}
	}
	return ""
}

// live returns the folder that Terraform works in.
func (d *deployment) live() string { return filepath.Join(d.work, "live", "aws") }

// settings returns the variables of the deployment: those for emulators, and optional settings, so that they
// are tried too.
func (d *deployment) settings() map[string]any {
	arch := "x86_64"
	if runtime.GOARCH == "arm64" {
		arch = "arm64"
	}
	vars := map[string]any{
		"name": d.name, "zips": d.zips, "architecture": arch,
		"emulated": true, "force_destroy": true, "deletion_protection": false,
		"allow_net":      []string{"127.0.0.0/8", "::1/128"},
		"alarm_email":    "nobody@example.org",
		"search_page":    "iam",
		"warc_lifecycle": map[string]any{"20261121-090719": map[string]int{"transition_days": 30, "expire_days": 365}},
	}
	maps.Copy(vars, d.vars)
	return vars
}

// apply deploys everything into an empty work folder.
func (d *deployment) apply(ctx context.Context) error {
	for _, f := range functions {
		if _, err := os.Stat(filepath.Join(d.zips, f+".zip")); err != nil {
			return fmt.Errorf("%w: 'make functions ARCH=%s' builds it", err, runtime.GOARCH)
		}
	}
	if err := os.RemoveAll(d.work); err != nil {
		return err
	}
	for _, dir := range []string{"aws", "live/aws"} {
		if err := copyTerraform(filepath.Join("infra", dir), filepath.Join(d.work, dir)); err != nil {
			return err
		}
	}
	vars, err := json.MarshalIndent(d.settings(), "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(d.live(), "emulated.auto.tfvars.json"), vars, 0o644); err != nil {
		return err
	}
	if err := d.shadow(ctx); err != nil {
		return err
	}
	args := []string{"init", "-input=false", "-no-color"}
	if dir := plugins(); dir != "" && get(d.env, "TF_CLI_ARGS_init") == "" {
		args = append(args, "-plugin-dir="+dir)
	}
	if err := d.tf(ctx, args...); err != nil {
		if strings.Contains(err.Error(), "query available provider packages") {
			return fmt.Errorf("the AWS provider is %w, and cannot be downloaded from here: TF_CLI_ARGS_init=-plugin-dir=FOLDER names a folder that has it", errMissing)
		}
		return err
	}
	if err := d.tf(ctx, "validate", "-no-color"); err != nil {
		return err
	}
	if err := d.tf(ctx, "apply", "-auto-approve", "-input=false", "-no-color", "-parallelism=64"); err != nil {
		return err
	}
	profile, err := d.output(ctx, "output", "-json", "profile")
	if err != nil {
		return err
	}
	file := filepath.Join(d.work, d.name+".json")
	if err := os.WriteFile(file, profile, 0o644); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "profile: "+file)
	return nil
}

// planAgain returns an error if Terraform would change anything that it has just created.
func (d *deployment) planAgain(ctx context.Context) error {
	found, err := d.plan(ctx)
	if err != nil {
		return err
	}
	bad := judge(d.out, found)
	// A budget can only be planned: see unfaithful.
	budget, err := d.plan(ctx, "-refresh=false", "-var=monthly_budget_usd=20")
	if err != nil {
		return err
	}
	const address = "module.watch.aws_budgets_budget.monthly[0]"
	if c, ok := budget[address]; !ok || c.does() != "create" {
		bad = append(bad, address+" is not planned")
	}
	if len(bad) > 0 {
		return fmt.Errorf("the second plan: %s", strings.Join(bad, "; "))
	}
	return nil
}

// account plans the resources that only an account gets. It makes no calls, because the state says what exists.
func (d *deployment) account(ctx context.Context) error {
	found, err := d.plan(ctx, "-refresh=false", "-var=emulated=false", "-var=concurrency_quota=1000", "-var=allow_net=[]", "-target=module.functions.aws_lambda_function_recursion_config.chains")
	if err != nil {
		return err
	}
	chains, err := json.Marshal(recursion(found))
	if err != nil {
		return err
	}
	file := filepath.Join(d.work, d.name+".chains.json")
	if err := os.WriteFile(file, chains, 0o644); err != nil {
		return err
	}
	fmt.Fprintln(d.out, "chains: "+file)
	return nil
}

// plan returns the changes of a plan, by address.
func (d *deployment) plan(ctx context.Context, args ...string) (map[string]change, error) {
	args = append([]string{"plan", "-input=false", "-no-color", "-parallelism=64", "-out=plan.tfplan"}, args...)
	if err := d.tf(ctx, args...); err != nil {
		return nil, err
	}
	b, err := d.output(ctx, "show", "-json", "plan.tfplan")
	if err != nil {
		return nil, err
	}
	return changes(b)
}

func (d *deployment) destroy(ctx context.Context) error {
	if _, err := os.Stat(d.live()); err != nil {
		return fmt.Errorf("nothing was applied here: %w", err)
	}
	err := d.tf(ctx, "destroy", "-auto-approve", "-input=false", "-no-color", "-parallelism=64")
	if err != nil {
		return err
	}
	if err := d.unshadow(ctx); err != nil {
		return err
	}
	return os.RemoveAll(d.work)
}

// tf runs terraform and prints how long it took. The error contains terraform's output.
func (d *deployment) tf(ctx context.Context, args ...string) error {
	began := time.Now()
	_, err := d.output(ctx, args...)
	word := "ok"
	if err != nil {
		word = "failed"
	}
	fmt.Fprintf(d.out, "%s %s: %s after %.1f s\n", d.terraform, args[0], word, time.Since(began).Seconds())
	return err
}

func (d *deployment) output(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, d.terraform, args...)
	cmd.Dir, cmd.Env = d.live(), d.env
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that it saves its state
	cmd.WaitDelay = 15 * time.Second
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", d.terraform, args[0], errors.Join(err, ctx.Err()), tail(stdout.String()+stderr.String(), 60))
	}
	return []byte(stdout.String()), nil
}

// tail returns the last n lines of a text.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// copyTerraform copies the Terraform files of a tree, but no state that lies beside them.
func copyTerraform(from, to string) error {
	tree := os.DirFS(from)
	files, _ := fs.Glob(tree, "*.tf") // the patterns are good
	below, _ := fs.Glob(tree, "*/*.tf")
	if files = append(files, below...); len(files) == 0 {
		return fmt.Errorf("no Terraform files in %s: run this in the root of the repository", from)
	}
	for _, name := range files {
		if base := path.Base(name); base == "state.tf" || base == "backend.tf" {
			continue // of a deployment to an account
		}
		b, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		file := filepath.Join(to, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
