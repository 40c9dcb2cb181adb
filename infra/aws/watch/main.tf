# Alarms and a budget; all of them notify one topic.

data "aws_caller_identity" "current" {}

locals {
  # Each alarm is for something that does not mend itself. Functions are retried and
  # wakes may be lost, so a single failure raises no alarm.
  alarms = merge(
    { for k, a in local.queues : k => merge(a, {
      namespace = "AWS/SQS", dimensions = { QueueName = "${var.name}-${a.of}" }, statistic = "Maximum", minutes = 5
    }) },
    { for k, a in local.functions : k => merge(a, {
      namespace = "AWS/Lambda", dimensions = { FunctionName = "${var.name}-${a.of}" }, statistic = "Sum", minutes = 15
    }) },
  )

  queues = {
    dead-letters = {
      of     = "dead-letters"
      says   = "A wake, a request or a job was given up after five tries: look at it with 'orbweaver dlq'."
      metric = "ApproximateNumberOfMessagesVisible"
      above  = 0
    }
    wakes-age = {
      of     = "wakes"
      says   = "The oldest wake waits for more than two hours, longer than that of a step that was killed: there are too few steps at a time, or they fail."
      metric = "ApproximateAgeOfOldestMessage"
      above  = 7200
    }
    intake-age = {
      of     = "intake"
      says   = "The oldest request waits for more than half an hour: the intake function fails."
      metric = "ApproximateAgeOfOldestMessage"
      above  = 1800
    }
  }

  # Every function has two: its errors, with a bound and a meaning of its own, and its throttles.
  functions = merge(
    { for f in var.functions : "${f}-errors" => merge(local.errors[f], { of = f, metric = "Errors" }) },
    { for f in var.functions : "${f}-throttles" => {
      of = f, metric = "Throttles", above = 10, says = "Lambda refuses to run ${f}: the account runs as many functions as it may."
    } },
    { for f in setintersection(["fetch", "index", "rank"], var.functions) : "${f}-loops" => {
      of = f, metric = "RecursiveInvocationsDropped", above = 0, says = "Lambda stops chains of ${f} calls as recursive loops: is its recursion setting still Allow?"
    } },
    { coordinate-dropped = {
      of = "coordinate", metric = "AsyncEventsDropped", above = 7, says = "Most ticks are dropped before they run: the account runs as many functions as it may."
    } },
  )

  errors = {
    fetch      = { above = 10, says = "Steps fail again and again." }
    coordinate = { above = 7, says = "Most ticks fail: what is due is no longer woken." }
    intake     = { above = 3, says = "Requests from outside fail again and again." }
    index      = { above = 10, says = "Index steps fail again and again: what is crawled does not become searchable." }
    rank       = { above = 10, says = "Rank steps fail again and again: ranks stay as they are." }
    query      = { above = 10, says = "Searches fail again and again." }
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
