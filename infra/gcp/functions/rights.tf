# Service accounts and their rights. Rights are for named resources; only the records need one for the database,
# because Firestore has no rights for a collection.

resource "google_service_account" "work" {
  account_id   = "${var.name}-work"
  display_name = "Orbweaver ${var.name}: fetch, coordinate, intake, index and rank"
}

resource "google_service_account" "invoke" {
  account_id   = "${var.name}-invoke"
  display_name = "Orbweaver ${var.name}: starts the service"
}

resource "google_service_account" "search" {
  count = var.search_page == "none" ? 0 : 1

  account_id   = "${var.name}-search"
  display_name = "Orbweaver ${var.name}: searches"
}

locals {
  # Roles for records and objects. Storing an object again, as a step does after a lost answer, needs the right to delete.
  roles = merge(
    { work = { member = google_service_account.work.member, records = "roles/datastore.user", objects = "roles/storage.objectUser" } },
    { for a in google_service_account.search : "search" => { member = a.member, records = "roles/datastore.viewer", objects = "roles/storage.objectViewer" } },
  )
}

resource "google_project_iam_member" "records" {
  for_each = local.roles

  project = var.project
  role    = each.value.records
  member  = each.value.member

  condition {
    title      = "default-database"
    expression = "resource.name == \"projects/${var.project}/databases/(default)\""
  }
}

resource "google_storage_bucket_iam_member" "objects" {
  for_each = local.roles

  bucket = var.bucket
  role   = each.value.objects
  member = each.value.member
}

# Pub/Sub has no conditions by name, so each mailbox has its own grants.
resource "google_pubsub_topic_iam_member" "send" {
  for_each = toset(concat(var.mailboxes, [var.dead_letters]))

  topic  = each.value
  role   = "roles/pubsub.publisher"
  member = google_service_account.work.member
}

resource "google_pubsub_subscription_iam_member" "mailbox" {
  for_each = toset(var.mailboxes)

  subscription = each.value
  role         = "roles/pubsub.subscriber"
  member       = google_service_account.work.member
}

resource "google_cloud_tasks_queue_iam_member" "tasks" {
  for_each = var.tasks

  location = var.region
  name     = each.value
  role     = "roles/cloudtasks.enqueuer"
  member   = google_service_account.work.member
}

# A task that starts the service as another account needs the right to act as that account.
resource "google_service_account_iam_member" "act" {
  service_account_id = google_service_account.invoke.name
  role               = "roles/iam.serviceAccountUser"
  member             = google_service_account.work.member
}

# The search page of everybody. With "iam", grant roles/run.invoker on the service NAME-search.
resource "google_cloud_run_v2_service_iam_member" "public" {
  count = var.search_page == "public" ? 1 : 0

  location = var.region
  name     = google_cloud_run_v2_service.service["search"].name
  role     = "roles/run.invoker"
  member   = "allUsers"
}
