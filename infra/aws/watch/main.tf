# Alarms and a budget; all of them notify one topic.

data "aws_caller_identity" "current" {}

locals {
  # Each alarm reports a problem that does not go away without help. Lambda retries functions, and
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
      says   = "A wake, a request or a job failed five times: see 'orbweaver dlq list'."
      metric = "ApproximateNumberOfMessagesVisible"
      above  = 0
    }
    wakes-age = {
      of     = "wakes"
      says   = "The oldest wake has waited for more than two hours, longer than after a killed step: raise max_concurrency, or see why steps fail."
      metric = "ApproximateAgeOfOldestMessage"
      above  = 7200
    }
    intake-age = {
      of     = "intake"
      says   = "The oldest request has waited for more than half an hour: the intake function fails."
      metric = "ApproximateAgeOfOldestMessage"
      above  = 1800
    }
  }

  # Every function has two alarms: one for its errors, with its own threshold and text, and one for throttles.
  functions = merge(
    { for f in var.functions : "${f}-errors" => merge(local.errors[f], { of = f, metric = "Errors" }) },
    { for f in var.functions : "${f}-throttles" => {
      of = f, metric = "Throttles", above = 10, says = "Lambda throttles ${f}: the account's quota of concurrent functions is used up."
    } },
    { for f in setintersection(["fetch", "index", "rank"], var.functions) : "${f}-loops" => {
      of = f, metric = "RecursiveInvocationsDropped", above = 0, says = "Lambda stops chains of ${f} calls as recursive loops: is its recursion setting still Allow?"
    } },
    { coordinate-dropped = {
      of = "coordinate", metric = "AsyncEventsDropped", above = 7, says = "Most coordinator runs are dropped before they start: the account's quota of concurrent functions is used up."
    } },
  )

  errors = {
    fetch      = { above = 10, says = "Steps fail repeatedly." }
    coordinate = { above = 7, says = "Most coordinator runs fail, so partitions with due work are not woken." }
    intake     = { above = 3, says = "Requests from outside fail repeatedly." }
    index      = { above = 10, says = "Index steps fail repeatedly, so new pages do not become searchable." }
    rank       = { above = 10, says = "Rank steps fail repeatedly, so ranks do not change." }
    query      = { above = 10, says = "Searches fail repeatedly." }
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
  treat_missing_data  = "notBreaching" # idle queues and functions report nothing
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]
}

# The alarm for a missing coordinator. The coordinator repairs everything else, but nothing replaces it.
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
