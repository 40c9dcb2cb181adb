package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/orbweaver/orbweaver/internal/emulators"
	"github.com/orbweaver/orbweaver/internal/lambdalocal"
	"github.com/orbweaver/orbweaver/internal/wiretap"
)

const (
	region  = "us-east-1"
	longest = time.Hour // a step that takes longer has failed; on a busy machine the build takes half of it
)

// world is the state that the steps of a scenario share.
type world struct {
	options
	out  io.Writer
	root string // folder of the module
	dir  string // temporary
	set  *emulators.Set

	// Calls of the functions go through the taps; calls of the scenario itself and of the mappings do not.
	tap, tableTap *wiretap.Tap
	queues        *sqs.Client
	table         *dynamodb.Client
	bucket        *s3.Client

	functions map[string]*lambdalocal.Function
	pollers   map[string]*lambdalocal.Poller
	stop      context.CancelFunc // ends pollers and schedules
	working   sync.WaitGroup

	deployed  deployment
	searchURL string   // of the search page
	opened    []func() // functions that close webs and views

	summary summary
}

// summary holds the results of a scenario.
type summary struct {
	Steps     []stepSummary                       `json:"steps"`
	Wire      wiretap.Counts                      `json:"wire"` // of the functions
	Functions map[string]lambdalocal.Totals       `json:"functions"`
	Pollers   map[string]lambdalocal.PollerCounts `json:"pollers"`
	Skipped   []string                            `json:"skipped,omitempty"` // checks that this machine could not run
}

type stepSummary struct {
	Name    string         `json:"name"`
	Seconds float64        `json:"seconds"`
	Error   string         `json:"error,omitempty"`
	Figures map[string]any `json:"figures,omitempty"` // measured by the step
}

// step is a part of the scenario. It returns figures to show, and an error if a check fails.
type step struct {
	name string
	run  func(ctx context.Context, w *world) (map[string]any, error)
}

// play runs the scenario and shows its summary.
func play(ctx context.Context, o options, set *emulators.Set, out io.Writer) error {
	w, err := newWorld(o, set, out)
	if err != nil {
		return err
	}
	defer w.close()
	for _, s := range scenario(o) {
		begin := time.Now()
		limit, cancel := context.WithTimeout(ctx, longest)
		var figures map[string]any
		if figures, err = s.run(limit, w); ctx.Err() != nil {
			err = errors.New("interrupted")
		}
		cancel()
		err = errors.Join(err, w.chained())
		sum := stepSummary{Name: s.name, Seconds: time.Since(begin).Seconds(), Figures: figures}
		verdict := "ok"
		if err != nil {
			err = fmt.Errorf("%s: %w", s.name, err)
			sum.Error, verdict = err.Error(), "WRONG"
		}
		w.summary.Steps = append(w.summary.Steps, sum)
		fmt.Fprintf(out, "%-5s %6.1f s  %s", verdict, sum.Seconds, s.name)
		if len(figures) > 0 {
			text, jsonErr := json.Marshal(figures)
			err = errors.Join(err, jsonErr)
			fmt.Fprintf(out, "  %s", text)
		}
		fmt.Fprintln(out)
		if err != nil {
			break
		}
	}
	w.finish()
	w.show()
	if o.json != "" {
		text, jsonErr := json.MarshalIndent(w.summary, "", "  ")
		if jsonErr == nil {
			jsonErr = os.WriteFile(o.json, append(text, '\n'), 0o644)
		}
		err = errors.Join(err, jsonErr)
	}
	return err
}

// chained checks that no chain of calls was stopped as a recursive loop: each step wakes the next one.
func (w *world) chained() (err error) {
	for _, name := range sorted(w.functions) {
		if n := w.functions[name].Totals().Recursive; n > 0 {
			err = errors.Join(err, fmt.Errorf("%d calls of %s were dropped as recursive loops: the plan for an account should set its recursive_loop to Allow", n, name))
		}
	}
	return err
}

func newWorld(o options, set *emulators.Set, out io.Writer) (w *world, err error) {
	w = &world{
		options: o, out: out, set: set,
		functions: map[string]*lambdalocal.Function{}, pollers: map[string]*lambdalocal.Poller{},
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	for name, v := range set.Environment() { // for this process and the commands that it runs
		if err := os.Setenv(name, v); err != nil {
			return nil, err
		}
	}
	if w.root, err = emulators.Root(); err != nil {
		return nil, err
	}
	if w.dir, err = os.MkdirTemp("", "orbweaver-localstack-"); err != nil {
		return nil, err
	}
	if w.tap, err = wiretap.Listen(set.AWS); err != nil {
		return nil, err
	}
	if w.tableTap, err = wiretap.Listen(set.DynamoDB); err != nil {
		return nil, err
	}
	config := aws.Config{Region: region, Credentials: credentials.NewStaticCredentialsProvider("test", "test", "")}
	w.queues = sqs.NewFromConfig(config, func(o *sqs.Options) { o.BaseEndpoint = &set.AWS })
	w.bucket = s3.NewFromConfig(config, func(o *s3.Options) { o.BaseEndpoint, o.UsePathStyle = &set.AWS, true })
	w.table = dynamodb.NewFromConfig(config, func(o *dynamodb.Options) { o.BaseEndpoint = &set.DynamoDB })
	return w, nil
}

// open opens a function that reaches the emulators through the taps.
func (w *world) open(c lambdalocal.Config) (*lambdalocal.Function, error) {
	env := map[string]string{"AWS_ENDPOINT_URL": w.tap.URL(), "AWS_ENDPOINT_URL_DYNAMODB": w.tableTap.URL()}
	maps.Copy(env, c.Env)
	c.Env, c.Region = env, region
	log, err := os.Create(w.logFile(c.Name))
	if err != nil {
		return nil, err
	}
	c.Log = log
	if w.verbose {
		c.Log = io.MultiWriter(log, w.out)
	}
	f, err := lambdalocal.Open(c)
	if err != nil {
		return nil, err
	}
	w.functions[c.Name] = f
	return f, nil
}

// logFile returns the name of the file with a function's output.
func (w *world) logFile(function string) string { return filepath.Join(w.dir, function+".log") }

// begin starts mappings and schedules, which drive the functions until halt is called, even after ctx has
// ended.
func (w *world) begin(ctx context.Context, mappings map[string]lambdalocal.Mapping, schedules ...lambdalocal.Schedule) error {
	log := slog.New(slog.NewTextHandler(w.out, nil))
	ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	for name, m := range mappings {
		m.Client, m.Log = w.queues, log
		p, err := lambdalocal.NewPoller(ctx, m)
		if err != nil {
			return err
		}
		w.pollers[name] = p
		w.working.Go(func() { p.Run(ctx) })
	}
	for _, s := range schedules {
		s.Log = log
		w.working.Go(func() { s.Run(ctx) })
	}
	return nil
}

// halt ends mappings and schedules, and waits for the running invocations.
func (w *world) halt() {
	if w.stop != nil {
		w.stop()
	}
	w.working.Wait()
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// finish fills in the summary.
func (w *world) finish() {
	w.halt()
	w.summary.Wire = w.tap.Counts().Plus(w.tableTap.Counts())
	w.summary.Functions = map[string]lambdalocal.Totals{}
	for name, f := range w.functions {
		w.summary.Functions[name] = f.Totals()
	}
	w.summary.Pollers = map[string]lambdalocal.PollerCounts{}
	for name, p := range w.pollers {
		w.summary.Pollers[name] = p.Counts()
	}
}

// show prints the summary as tables.
func (w *world) show() {
	t := tabwriter.NewWriter(w.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\non the wire\trequests\tunits\tbytes in\tbytes out\t4xx\t5xx\tno reply")
	for _, op := range w.summary.Wire.Ops() {
		c := w.summary.Wire[op]
		fmt.Fprintf(t, "%s\t%d\t%g\t%d\t%d\t%d\t%d\t%d\n", op, c.Requests, c.Units, c.In, c.Out, c.Status4xx, c.Status5xx, c.NoReply)
	}
	fmt.Fprintln(t, "\nfunction\tcalls\tcold\tbilled\tGB-s\tMB at most\tat once\toutcomes")
	for _, name := range sorted(w.summary.Functions) {
		f := w.summary.Functions[name]
		fmt.Fprintf(t, "%s\t%d\t%d\t%v\t%.3f\t%d\t%d\t%v\n", name, f.Invocations, f.Cold, f.Billed, f.GBSeconds, f.MaxMemoryMB, f.MostAtOnce, f.Outcomes)
	}
	fmt.Fprintln(t, "\nmapping\treceives\tempty\tmessages\tdeleted\treturned\tbilled requests")
	for _, name := range sorted(w.summary.Pollers) {
		p := w.summary.Pollers[name]
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\n", name, p.Receives, p.Empty, p.Messages, p.Deleted, p.Returned, p.Requests)
	}
	t.Flush()
}

// skip records a check that this machine cannot run.
func (w *world) skip(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	w.summary.Skipped = append(w.summary.Skipped, what)
	fmt.Fprintln(w.out, "SKIPPED:", what)
}

// close ends everything that the world started, but not the emulators.
func (w *world) close() {
	w.halt()
	for _, f := range w.functions {
		f.Close()
	}
	for _, end := range w.opened {
		end()
	}
	for _, t := range []*wiretap.Tap{w.tap, w.tableTap} {
		if t != nil {
			t.Close()
		}
	}
	if w.keep {
		fmt.Fprintln(w.out, "kept:", w.dir)
		return
	}
	os.RemoveAll(w.dir)
}
