output "topic_arn" {
  description = "ARN of the topic of alarms."
  value       = aws_sns_topic.alarms.arn
}
