output "tasks" {
  description = "Names of the queues of tasks, by role: wakes, and with an index also index and rank."
  value       = { for k, q in google_cloud_tasks_queue.tasks : k => q.name }
}

output "mailboxes" {
  description = "Names of the mailboxes, which are those of their topics and subscriptions, in the order of the partitions."
  value       = google_pubsub_subscription.mailbox[*].name
}

output "intake" {
  description = "Name of the topic and subscription of requests."
  value       = google_pubsub_subscription.intake.name
}

output "dead_letters" {
  description = "Name of the topic and subscription of dead letters."
  value       = google_pubsub_subscription.dead_letters.name
}
