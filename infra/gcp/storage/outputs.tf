output "bucket" {
  description = "Name of the bucket."
  value       = google_storage_bucket.objects.name
}

output "collection" {
  description = "Name of the collection of records, which exists once the database and its exemption do."
  value       = google_firestore_field.value.collection
}
