output "urls" {
  description = "URLs of the queues by role; mailboxes in the order of their partitions."
  value = {
    wakes        = aws_sqs_queue.wakes.url
    intake       = aws_sqs_queue.intake.url
    dead_letters = aws_sqs_queue.dead_letters.url
    mailboxes    = aws_sqs_queue.mailbox[*].url
  }
}

output "wakes_arn" {
  description = "ARN of the wakes queue."
  value       = aws_sqs_queue.wakes.arn
}

output "intake_arn" {
  description = "ARN of the intake queue."
  value       = aws_sqs_queue.intake.arn
}
