# What tells somebody: alarms and a budget, all to one topic.

data "aws_caller_identity" "current" {}

locals {
  # Few, each for something that does not mend itself. Functions are tried again and
  # wakes may be lost, so a single failure is nothing. Who searches sees that it fails.
  alarms = { for k, a in local.all : k => a if var.index || !contains(["index-errors", "rank-errors"], k) }

  all = {
    dead-letters = {
      says       = "A wake, a request or a job was given up after five tries: look at it with 'orbweaver dlq'."
      namespace  = "AWS/SQS"
      metric     = "ApproximateNumberOfMessagesVisible"
      dimensions = { QueueName = "${var.name}-dead-letters" }
      statistic  = "Maximum"
      minutes    = 5
      above      = 0
    }
    wakes-age = {
      says       = "The oldest wake waits for more than two hours, longer than that of a step that was killed: there are too few steps at a time, or they fail."
      namespace  = "AWS/SQS"
      metric     = "ApproximateAgeOfOldestMessage"
      dimensions = { QueueName = "${var.name}-wakes" }
      statistic  = "Maximum"
      minutes    = 5
      above      = 7200
    }
    intake-age = {
      says       = "The oldest request waits for more than half an hour: the intake function fails."
      namespace  = "AWS/SQS"
      metric     = "ApproximateAgeOfOldestMessage"
      dimensions = { QueueName = "${var.name}-intake" }
      statistic  = "Maximum"
      minutes    = 5
      above      = 1800
    }
    fetch-errors = {
      says       = "Steps fail again and again."
      namespace  = "AWS/Lambda"
      metric     = "Errors"
      dimensions = { FunctionName = "${var.name}-fetch" }
      statistic  = "Sum"
      minutes    = 15
      above      = 10
    }
    coordinate-errors = {
      says       = "Most ticks fail: what is due is no longer woken."
      namespace  = "AWS/Lambda"
      metric     = "Errors"
      dimensions = { FunctionName = "${var.name}-coordinate" }
      statistic  = "Sum"
      minutes    = 15
      above      = 7
    }
    intake-errors = {
      says       = "Requests from outside fail again and again."
      namespace  = "AWS/Lambda"
      metric     = "Errors"
      dimensions = { FunctionName = "${var.name}-intake" }
      statistic  = "Sum"
      minutes    = 15
      above      = 3
    }
    index-errors = {
      says       = "Index steps fail again and again: what is crawled does not become searchable."
      namespace  = "AWS/Lambda"
      metric     = "Errors"
      dimensions = { FunctionName = "${var.name}-index" }
      statistic  = "Sum"
      minutes    = 15
      above      = 10
    }
    rank-errors = {
      says       = "Rank steps fail again and again: ranks stay as they are."
      namespace  = "AWS/Lambda"
      metric     = "Errors"
      dimensions = { FunctionName = "${var.name}-rank" }
      statistic  = "Sum"
      minutes    = 15
      above      = 10
    }
    throttles = {
      says       = "Steps are refused: max_concurrency is above what the account has left."
      namespace  = "AWS/Lambda"
      metric     = "Throttles"
      dimensions = { FunctionName = "${var.name}-fetch" }
      statistic  = "Sum"
      minutes    = 15
      above      = 10
    }
  }
}

resource "aws_sns_topic" "alarms" {
  name = "${var.name}-alarms"
}

resource "aws_sns_topic_policy" "alarms" {
  arn = aws_sns_topic.alarms.arn

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid       = "Publish"
      Effect    = "Allow"
      Principal = { Service = ["cloudwatch.amazonaws.com", "budgets.amazonaws.com"] }
      Action    = "SNS:Publish"
      Resource  = aws_sns_topic.alarms.arn
      Condition = {
        StringEquals = { "aws:SourceAccount" = data.aws_caller_identity.current.account_id }
      }
    }]
  })
}

resource "aws_sns_topic_subscription" "email" {
  count = var.alarm_email == "" ? 0 : 1

  topic_arn = aws_sns_topic.alarms.arn
  protocol  = "email"
  endpoint  = var.alarm_email
}

resource "aws_cloudwatch_metric_alarm" "failing" {
  for_each = var.alarms ? local.alarms : {}

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.says
  namespace           = each.value.namespace
  metric_name         = each.value.metric
  dimensions          = each.value.dimensions
  statistic           = each.value.statistic
  period              = each.value.minutes * 60
  evaluation_periods  = 1
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.above
  treat_missing_data  = "notBreaching" # queues and functions at rest report nothing
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}

# The one for silence. All else is repaired by the tick, so nothing repairs its absence.
resource "aws_cloudwatch_metric_alarm" "tick" {
  count = var.alarms ? 1 : 0

  alarm_name          = "${var.name}-no-tick"
  alarm_description   = "The coordinator did not run for a quarter of an hour: is the schedule there and enabled, is the function throttled?"
  namespace           = "AWS/Lambda"
  metric_name         = "Invocations"
  dimensions          = { FunctionName = "${var.name}-coordinate" }
  statistic           = "Sum"
  period              = 900
  evaluation_periods  = 1
  comparison_operator = "LessThanThreshold"
  threshold           = 1
  treat_missing_data  = "breaching"
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}

resource "aws_budgets_budget" "monthly" {
  count = var.monthly_budget_usd > 0 ? 1 : 0

  name         = "${var.name}-monthly"
  budget_type  = "COST"
  limit_amount = tostring(var.monthly_budget_usd)
  limit_unit   = "USD"
  time_unit    = "MONTHLY"

  dynamic "cost_filter" {
    for_each = var.budget_by_tag ? [format("user:orbweaver$%s", var.name)] : []

    content {
      name   = "TagKeyValue"
      values = [cost_filter.value]
    }
  }

  dynamic "notification" {
    for_each = { ACTUAL = 80, FORECASTED = 100 }

    content {
      notification_type         = notification.key
      comparison_operator       = "GREATER_THAN"
      threshold                 = notification.value
      threshold_type            = "PERCENTAGE"
      subscriber_sns_topic_arns = [aws_sns_topic.alarms.arn]
    }
  }

  depends_on = [aws_sns_topic_policy.alarms]
}
