package infra_test

import (
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/orbweaver/orbweaver/blobschema/naming"
	"github.com/orbweaver/orbweaver/platform"
)

// TestGoogleNames checks that Terraform creates the queues and the exemption that the program uses.
func TestGoogleNames(t *testing.T) {
	queues := modules(t)["gcp/queues"]
	prefix, format := strings.CutSuffix(naming.MailboxQueue(0), "00000")
	if !format || naming.MailboxQueue(4095) != prefix+"04095" {
		t.Fatalf("names of mailboxes: %s", naming.MailboxQueue(4095))
	}
	want := []string{
		`name = format("%s-` + prefix + `%05d", var.name, count.index)`,
		`name = "${var.name}-` + naming.IntakeQueue + `"`,
		`name = "${var.name}-` + naming.DeadLettersQueue + `"`,
		`{ ` + naming.WakesQueue + ` = var.max_concurrency },`,
		`var.index ? { ` + naming.IndexQueue + ` = var.index_concurrency, ` + naming.RankQueue + ` = var.index_concurrency } : {},`,
	}
	for _, line := range want {
		if !strings.Contains(strings.Join(strings.Fields(queues), " "), line) {
			t.Errorf("gcp/queues has no line %s", line)
		}
	}
	if field, _ := reflect.TypeFor[platform.Document]().FieldByName("Value"); !strings.Contains(modules(t)["gcp/storage"], `field      = "`+field.Tag.Get("docstore")+`"`) {
		t.Errorf("the field %q of records is not exempt from indexes", field.Tag.Get("docstore"))
	}
}

// TestGoogleSubscriptions checks that the driver and Terraform create the same subscriptions.
func TestGoogleSubscriptions(t *testing.T) {
	driver, err := os.ReadFile("../internal/drivers/gcp/queue.go")
	if err != nil {
		t.Fatal(err)
	}
	queues := modules(t)["gcp/queues"]
	for source, lines := range map[string]map[string]int{
		string(driver): {"visibility = 10 * time.Minute": 1, "retention  = 31 * 24 * time.Hour": 1, "&pubsubpb.ExpirationPolicy{}": 1},
		queues:         {"ack_deadline_seconds       = 600": 3, "message_retention_duration = local.retention": 3, "ttl = local.no_expiry": 3, `retention = "2678400s"`: 1, `no_expiry = ""`: 1},
	} {
		for line, n := range lines {
			if got := strings.Count(source, line); got != n {
				t.Errorf("%q: %d times, not %d: the driver and gcp/queues must agree", line, got, n)
			}
		}
	}
}

// TestGoogleRights lists all rights.
func TestGoogleRights(t *testing.T) {
	want := []string{
		"google_cloud_run_v2_service_iam_member.public roles/run.invoker",
		"google_cloud_tasks_queue_iam_member.tasks roles/cloudtasks.enqueuer",
		"google_project_iam_member.records each.value.records",
		"google_pubsub_subscription_iam_member.intake roles/pubsub.subscriber",
		"google_pubsub_subscription_iam_member.mailbox roles/pubsub.subscriber",
		"google_pubsub_topic_iam_member.dead_letters roles/pubsub.publisher",
		"google_pubsub_topic_iam_member.lists roles/pubsub.publisher",
		"google_pubsub_topic_iam_member.send roles/pubsub.publisher",
		"google_service_account_iam_member.act roles/iam.serviceAccountUser",
		"google_storage_bucket_iam_member.objects each.value.objects",
		"in roles: roles/datastore.user", "in roles: roles/datastore.viewer",
		"in roles: roles/storage.objectUser", "in roles: roles/storage.objectViewer",
	}
	var got []string
	for dir, text := range modules(t) {
		if !strings.Contains(dir, "gcp") {
			continue
		}
		for _, m := range regexp.MustCompile(`(?ms)^resource "(google_\w*iam\w*)" "(\w+)" \{\n(.*?)^\}`).FindAllStringSubmatch(text, -1) {
			role := regexp.MustCompile(`(?m)^  role += (.+)$`).FindStringSubmatch(m[3])
			if role == nil {
				t.Fatalf("%s.%s has no role", m[1], m[2])
			}
			got = append(got, m[1]+"."+m[2]+" "+strings.Trim(role[1], `"`))
		}
		for _, m := range regexp.MustCompile(`(?:records|objects) = "(roles/[\w.]+)"`).FindAllStringSubmatch(text, -1) {
			got = append(got, "in roles: "+m[1])
		}
		if n := strings.Count(text, "allUsers"); n > 1 || n == 1 && !strings.Contains(text, `count = var.search_page == "public" ? 1 : 0`) {
			t.Errorf("%s: everybody may do more than search a public page", dir)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("rights:\n%s", strings.Join(got, "\n"))
	}
}
