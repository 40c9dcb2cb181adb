//go:build gcp

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/orbweaver/orbweaver/blobschema"
	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/blobschema/wire"
	"github.com/orbweaver/orbweaver/internal/crawl"
	"github.com/orbweaver/orbweaver/internal/engine"
	"github.com/orbweaver/orbweaver/internal/fsck"
	"github.com/orbweaver/orbweaver/internal/service"
	"github.com/orbweaver/orbweaver/internal/simweb"
	"github.com/orbweaver/orbweaver/internal/view"
	"github.com/orbweaver/orbweaver/internal/weburl"
)

// TestCrawl crawls a whole web by requests alone, while two of five fail. The pages must equal the ground truth and be
// found. Then a request and a list in the bucket have URLs fetched again.
func TestCrawl(t *testing.T) {
	srv, err := simweb.Start(t.Context(), simweb.Demo())
	must(t, err)
	defer srv.Close()
	web := srv.Web()
	d := deploy(t, 3)
	d.faulty = true
	seeds := parsed(t, web.Seeds()...)
	s, err := service.New(d.platform, service.Config{})
	must(t, err)
	_, _, _, err = s.Begin(blobschema.Crawl{
		Version: wire.Version, ID: "test", Created: time.Now(), HashKey: make([]byte, 16), Slots: 256, Partitions: 4,
		Settings: blobschema.Settings{
			Scope: blobschema.ScopeAny, MaxDepth: -1, UserAgent: "orbweaver/test", MaxBody: 16 << 20, Timeout: 10 * time.Second, Index: true,
		},
	}, crawl.Seeds(seeds), nil)
	must(t, err)
	v, err := view.New(t.Context(), engine.Store{Platform: d.platform})
	must(t, err)
	stop := d.serve(300 * time.Millisecond)
	defer stop()
	d.until("the crawl has finished", func() bool {
		status, err := v.Status(t.Context())
		must(t, err)
		return status.State == view.Finished
	})
	got, other := map[string]simweb.Got{}, "" // another page beside the seed
	for pg, err := range v.Pages(t.Context(), view.EveryRecord) {
		must(t, err)
		if !pg.Robots {
			got[pg.URL] = simweb.GotOf(pg)
			if pg.URL != seeds[0].String() && pg.Status == http.StatusOK {
				other = pg.URL
			}
		}
	}
	if diff := simweb.Diff(web.Truth(simweb.Scope{}), got); diff != "" {
		t.Error(diff)
	}

	intake, err := d.platform.Queue(naming.IntakeQueue)
	must(t, err)
	must(t, intake.Send(t.Context(), [][]byte{fmt.Appendf(nil, `{"id": "cms-1", "recrawl": [%q]}`, seeds[0])}, 0))
	d.upload("lists/recrawl/day.txt", other+"\n")
	for _, u := range append(seeds[:1], parsed(t, other)...) {
		d.until("a URL is fetched again", func() bool {
			history, err := v.History(t.Context(), u)
			must(t, err)
			return len(history) > 1
		})
	}
	d.until("everything is indexed", func() bool { return d.indexed(v) })
	d.until("ranks are computed", func() bool { return strings.Contains(d.log.String(), `"msg":"rank"`) })
	d.until("a page is found by its title", func() bool {
		return slices.Contains(d.searched(queries(d.function(&worker{})), title(t, seeds[0].String())), seeds[0].String())
	})
	stop()
	for _, u := range append(seeds[:1], parsed(t, other)...) {
		if history, err := v.History(t.Context(), u); err != nil || len(history) != 2 {
			t.Errorf("%s was fetched %d times, %v", u, len(history), err)
		}
	}
	r, err := fsck.Check(t.Context(), v.Store(), fsck.Options{Crawl: "test"})
	if err != nil || !r.Clean() {
		t.Errorf("fsck: %v %v", err, r.Violations)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.requests["/fetch"] < 4 || d.requests["/index"] < 4 || d.requests["/intake"] < 4 {
		t.Errorf("too few requests to have failed in both ways: %v", d.requests)
	}
	t.Log("requests:", d.requests)
}

func parsed(t *testing.T, texts ...string) (urls []weburl.URL) {
	t.Helper()
	for _, text := range texts {
		u, err := weburl.Parse(text)
		must(t, err)
		urls = append(urls, u)
	}
	return urls
}

// until waits until a condition is true.
func (d *deployment) until(what string, is func() bool) {
	d.t.Helper()
	began := time.Now()
	for !is() {
		if time.Since(began) > time.Minute {
			d.t.Fatalf("not until a minute later: %s\n%s", what, d.log)
		}
		time.Sleep(20 * time.Millisecond)
	}
	d.t.Logf("%s after %v", what, time.Since(began).Round(time.Millisecond))
}

// upload stores an object. The bucket notifies the intake topic, twice.
func (d *deployment) upload(name, text string) {
	d.t.Helper()
	must(d.t, d.platform.Bucket.WriteAll(d.t.Context(), name, []byte(text), nil))
	topics, err := pubsub.NewTopicAdminClient(d.t.Context())
	must(d.t, err)
	defer func() { must(d.t, topics.Close()) }()
	data, err := json.Marshal(map[string]string{
		"kind": "storage#object", "bucket": "pages", "name": name, "generation": "1790000000000000", "size": fmt.Sprint(len(text)),
	})
	must(d.t, err)
	m := &pubsubpb.PubsubMessage{Data: data, Attributes: map[string]string{
		"eventType": "OBJECT_FINALIZE", "payloadFormat": "JSON_API_V1", "bucketId": "pages", "objectId": name, "objectGeneration": "1790000000000000",
	}}
	_, err = topics.Publish(d.t.Context(), &pubsubpb.PublishRequest{Topic: project + "topics/orbweaver-intake", Messages: []*pubsubpb.PubsubMessage{m, m}})
	must(d.t, err)
}

// indexed reports whether every commit is indexed.
func (d *deployment) indexed(v *view.View) bool {
	heads, err := v.Heads(context.Background())
	must(d.t, err)
	for i := range heads {
		recs, err := engine.ReadRecords(context.Background(), d.platform, []string{naming.IndexKey("test", heads[i].Partition)})
		must(d.t, err)
		var x blobschema.IndexHead
		if !recs[0].Found || json.Unmarshal(recs[0].Value, &x) != nil || x.Seq < heads[i].Seq {
			return false
		}
	}
	return true
}

// title fetches the title of a page.
func title(t *testing.T, url string) string {
	t.Helper()
	answer, err := http.Get(url)
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	must(t, err)
	m := regexp.MustCompile(`<title>([^<]+)</title>`).FindSubmatch(body)
	if m == nil {
		t.Fatalf("no title at %s: %.200s", url, body)
	}
	return string(m[1])
}

// TestQueryBeforeCrawl asks for the search page, and for results that there are not.
func TestQueryBeforeCrawl(t *testing.T) {
	d := deploy(t, 1)
	h := queries(d.function(&worker{}))
	for target, want := range map[string]int{"/": 200, "/?q=tea": 503, "/search.json?q=tea": 503, "/fetch": 404} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, target, nil))
		if answer.Code != want {
			t.Errorf("%s: %d %s", target, answer.Code, answer.Body)
		}
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, "/fetch", nil))
	if answer.Code != 405 {
		t.Errorf("POST: %d", answer.Code)
	}
}
