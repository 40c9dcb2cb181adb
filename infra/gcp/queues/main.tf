# The queues. Cloud Tasks carries wakes and jobs, because it has delays and a limit of concurrent calls. Pub/Sub
# carries mail, which steps pull, and requests from outside, which it pushes.

data "google_storage_project_service_account" "storage" {}

locals {
  retention = "2678400s" # 31 days, the maximum
  no_expiry = ""         # the default deletes subscriptions that were idle for 31 days

  # Highest number of concurrent calls, by queue. A partition has index jobs and rank jobs.
  tasks = merge(
    { wakes = var.max_concurrency },
    var.index ? { index = var.index_concurrency, rank = var.index_concurrency } : {},
  )

  pubsub = "serviceAccount:service-${var.project_number}@gcp-sa-pubsub.iam.gserviceaccount.com"
}

# Wakes and jobs are hints to run a step. Each task names the service and the account itself. A task whose attempts
# all fail is dropped; the coordinator sends another one.
resource "google_cloud_tasks_queue" "tasks" {
  for_each = local.tasks

  name     = "${var.name}-${each.key}"
  location = var.region

  rate_limits {
    max_concurrent_dispatches = each.value
  }

  retry_config {
    max_attempts  = 5
    min_backoff   = "10s"
    max_backoff   = "600s"
    max_doublings = 5
  }
}

# The mailbox of each partition. There is no dead-letter policy: a step stores unreadable mail as a dead letter, and
# no other mail is ever dropped, however often a step dies.
resource "google_pubsub_topic" "mailbox" {
  count = var.mailboxes

  name = format("%s-mailbox-%05d", var.name, count.index)
}

# With the settings of internal/drivers/gcp/queue.go.
resource "google_pubsub_subscription" "mailbox" {
  count = var.mailboxes

  name                       = google_pubsub_topic.mailbox[count.index].name
  topic                      = google_pubsub_topic.mailbox[count.index].id
  ack_deadline_seconds       = 600
  message_retention_duration = local.retention

  expiration_policy {
    ttl = local.no_expiry
  }
}

resource "google_pubsub_topic" "dead_letters" {
  name = "${var.name}-dead-letters"
}

resource "google_pubsub_subscription" "dead_letters" {
  name                       = google_pubsub_topic.dead_letters.name
  topic                      = google_pubsub_topic.dead_letters.id
  ack_deadline_seconds       = 600
  message_retention_duration = local.retention

  expiration_policy {
    ttl = local.no_expiry
  }
}

# Requests from outside.
resource "google_pubsub_topic" "intake" {
  name = "${var.name}-intake"
}

resource "google_pubsub_subscription" "intake" {
  name                       = google_pubsub_topic.intake.name
  topic                      = google_pubsub_topic.intake.id
  ack_deadline_seconds       = 600
  message_retention_duration = local.retention

  push_config {
    push_endpoint = "${var.service_url}/intake"

    oidc_token {
      service_account_email = var.invoker
      audience              = var.service_url
    }
  }

  # Ten attempts take about an hour.
  retry_policy {
    minimum_backoff = "60s"
    maximum_backoff = "600s"
  }

  dead_letter_policy {
    dead_letter_topic     = google_pubsub_topic.dead_letters.id
    max_delivery_attempts = 10
  }

  expiration_policy {
    ttl = local.no_expiry
  }
}

# Pub/Sub itself moves a request whose attempts all failed, with these two rights.
resource "google_pubsub_topic_iam_member" "dead_letters" {
  topic  = google_pubsub_topic.dead_letters.id
  role   = "roles/pubsub.publisher"
  member = local.pubsub
}

resource "google_pubsub_subscription_iam_member" "intake" {
  subscription = google_pubsub_subscription.intake.id
  role         = "roles/pubsub.subscriber"
  member       = local.pubsub
}

# Lists of URLs in the bucket become requests.
resource "google_pubsub_topic_iam_member" "lists" {
  topic  = google_pubsub_topic.intake.id
  role   = "roles/pubsub.publisher"
  member = data.google_storage_project_service_account.storage.member
}

resource "google_storage_notification" "lists" {
  bucket             = var.bucket
  topic              = google_pubsub_topic.intake.id
  payload_format     = "JSON_API_V1"
  event_types        = ["OBJECT_FINALIZE"]
  object_name_prefix = "lists/"

  depends_on = [google_pubsub_topic_iam_member.lists]
}
