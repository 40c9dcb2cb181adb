output "names" {
  description = "Names of the services by role: work, and search if there is a search page."
  value       = { for k, s in google_cloud_run_v2_service.service : k => s.name }
}

output "invoker" {
  description = "E-mail address of the service account that starts the service."
  value       = google_service_account.invoke.email
}

output "search_url" {
  description = "URL of the search page; null without one."
  value       = one([for k, s in google_cloud_run_v2_service.service : s.uri if k == "search"])
}
