output "topic_arn" {
  description = "ARN of the topic that alarms go to."
  value       = aws_sns_topic.alarms.arn
}
