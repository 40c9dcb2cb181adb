# The state of a crawl: the records in Firestore and the bucket of the objects.

# The project's default database, which deployments share: the records of each are the collection of its name.
# Terraform never deletes it.
resource "google_firestore_database" "records" {
  count = var.create_database ? 1 : 0

  name                    = "(default)"
  location_id             = var.region
  type                    = "FIRESTORE_NATIVE"
  delete_protection_state = "DELETE_PROTECTION_ENABLED"
  deletion_policy         = "ABANDON"
}

# Without this exemption Firestore maintains an index of each record's contents, which nobody reads.
resource "google_firestore_field" "value" {
  database   = "(default)"
  collection = var.name
  field      = "value"

  index_config {}

  depends_on = [google_firestore_database.records]
}

resource "google_storage_bucket" "objects" {
  name                        = var.bucket
  location                    = var.region
  force_destroy               = var.force_destroy
  uniform_bucket_level_access = true
  public_access_prevention    = "enforced"

  # Otherwise deleted objects are billed for another week.
  soft_delete_policy {
    retention_duration_seconds = 0
  }

  # Uploads that a crash ended leave parts, which are invisible and would be billed forever.
  lifecycle_rule {
    condition {
      age = 1
    }

    action {
      type = "AbortIncompleteMultipartUpload"
    }
  }
}
