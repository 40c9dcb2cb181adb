output "rule" {
  description = "Name of the rule."
  value       = aws_cloudwatch_event_rule.feed.name
}
