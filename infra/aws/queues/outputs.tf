output "urls" {
  description = "URLs of the queues by role; mailboxes in the order of their partitions."
  value = merge({
    wakes        = aws_sqs_queue.wakes.url
    intake       = aws_sqs_queue.intake.url
    dead_letters = aws_sqs_queue.dead_letters.url
    mailboxes    = aws_sqs_queue.mailbox[*].url
  }, { for k, q in aws_sqs_queue.jobs : k => q.url })
}

output "wakes_arn" {
  description = "ARN of the wakes queue."
  value       = aws_sqs_queue.wakes.arn
}

output "intake_arn" {
  description = "ARN of the intake queue."
  value       = aws_sqs_queue.intake.arn
}

output "jobs_arns" {
  description = "ARNs of the queues index and rank, by those names; none without an index."
  value       = { for k, q in aws_sqs_queue.jobs : k => q.arn }
}
