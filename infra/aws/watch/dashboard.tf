# What functions write as embedded metrics, if the deployment has metrics: a dashboard, and alarms.

data "aws_region" "current" {}

locals {
  namespace = "Orbweaver"

  # The alarms on figures of the crawl. An expression names metrics by their keys; CloudWatch bills an alarm for each of them.
  figures = {
    stalled = {
      says       = "For two hours the crawl has had pending URLs or unread mail, and no URL got an outcome: see 'orbweaver status', then the logs of fetch."
      expression = "IF(running > 0 AND pending + mail > 0 AND FILL(fetches, 0) == 0, 1, 0)"
      above      = 0
      hours      = 1
      periods    = 2
      metrics = {
        running = { namespace = local.namespace, name = "orbweaver_running", statistic = "Minimum" }
        pending = { namespace = local.namespace, name = "orbweaver_pending_urls", statistic = "Minimum" }
        mail    = { namespace = local.namespace, name = "orbweaver_unread_mail", statistic = "Minimum" }
        fetches = { namespace = local.namespace, name = "orbweaver_fetches_total", statistic = "Sum" }
      }
    }
    refusing = {
      says       = "More requests failed than URLs got an outcome in an hour: hosts refuse the crawler or do not answer. See 'orbweaver hosts'."
      expression = "IF(retries > fetches AND retries > 100, 1, 0)"
      above      = 0
      hours      = 1
      periods    = 1
      metrics = {
        retries = { namespace = local.namespace, name = "orbweaver_retries_total", statistic = "Sum" }
        fetches = { namespace = local.namespace, name = "orbweaver_fetches_total", statistic = "Sum" }
      }
    }
    throttled = {
      says       = "DynamoDB throttled more than a hundred calls of the table in an hour."
      expression = "FILL(reads, 0) + FILL(writes, 0)"
      above      = 100
      hours      = 1
      periods    = 1
      metrics = {
        reads  = { namespace = "AWS/DynamoDB", name = "ReadThrottleEvents", statistic = "Sum" }
        writes = { namespace = "AWS/DynamoDB", name = "WriteThrottleEvents", statistic = "Sum" }
      }
    }
    cost = {
      says       = "The calls and functions of a day cost more than daily_cost_usd at list prices. 'orbweaver pause' pauses the crawl."
      expression = "FILL(cost, 0)"
      above      = var.daily_cost_usd
      hours      = 24
      periods    = 1
      metrics = {
        cost = { namespace = local.namespace, name = "orbweaver_cost_dollars_total", statistic = "Sum" }
      }
    }
  }

  dimensions = {
    (local.namespace) = { deployment = var.name }
    "AWS/DynamoDB"    = { TableName = var.name }
  }

  own = { for name, statistic in {
    orbweaver_pages_total          = "Sum"
    orbweaver_fetches_total        = "Sum"
    orbweaver_retries_total        = "Sum"
    orbweaver_received_bytes_total = "Sum"
    orbweaver_cost_dollars_total   = "Sum"
    orbweaver_known_urls           = "Maximum"
    orbweaver_pending_urls         = "Maximum"
    orbweaver_unread_mail          = "Maximum"
    orbweaver_refusing_hosts       = "Maximum"
    orbweaver_running              = "Minimum"
  } : name => [local.namespace, name, "deployment", var.name, { stat = statistic }] }

  lambda = { for metric in ["Invocations", "Errors", "Throttles", "Duration"] : metric => [
    for f in var.functions : ["AWS/Lambda", metric, "FunctionName", "${var.name}-${f}", { stat = metric == "Duration" ? "Average" : "Sum" }]
  ] }

  ages = "SEARCH('{AWS/SQS,QueueName} MetricName=\"ApproximateAgeOfOldestMessage\" ${var.name} mailbox', 'Maximum', 300)"

  widgets = [
    { title = "Pages, URLs with an outcome, retries", metrics = [local.own.orbweaver_pages_total, local.own.orbweaver_fetches_total, local.own.orbweaver_retries_total] },
    { title = "URLs", metrics = [local.own.orbweaver_known_urls, local.own.orbweaver_pending_urls] },
    { title = "Bytes received", metrics = [local.own.orbweaver_received_bytes_total] },
    { title = "Refusing hosts of a partition, at most; running", metrics = [local.own.orbweaver_refusing_hosts, local.own.orbweaver_running] },
    { title = "Unread mail", metrics = [local.own.orbweaver_unread_mail] },
    { title = "Seconds of the oldest mail of each mailbox", metrics = [[{ expression = local.ages }]] },
    { title = "Function calls", metrics = local.lambda.Invocations },
    { title = "Failed and throttled calls", metrics = concat(local.lambda.Errors, local.lambda.Throttles) },
    { title = "Milliseconds of a call", metrics = local.lambda.Duration },
    { title = "Queues", metrics = [for q, metric in { wakes = "ApproximateAgeOfOldestMessage", intake = "ApproximateAgeOfOldestMessage", dead-letters = "ApproximateNumberOfMessagesVisible" } : ["AWS/SQS", metric, "QueueName", "${var.name}-${q}", { stat = "Maximum" }]] },
    { title = "Throttled calls of the table", metrics = [for m in ["ReadThrottleEvents", "WriteThrottleEvents"] : ["AWS/DynamoDB", m, "TableName", var.name, { stat = "Sum" }]] },
    { title = "Dollars a day, at list prices", metrics = [local.own.orbweaver_cost_dollars_total], period = 86400 },
  ]
}

resource "aws_cloudwatch_metric_alarm" "figures" {
  for_each = { for k, a in local.figures : k => a if var.metrics && var.alarms && (k != "cost" || var.daily_cost_usd > 0) }

  alarm_name          = "${var.name}-${each.key}"
  alarm_description   = each.value.says
  evaluation_periods  = each.value.periods
  comparison_operator = "GreaterThanThreshold"
  threshold           = each.value.above
  treat_missing_data  = "notBreaching" # an idle crawl reports nothing
  alarm_actions       = [aws_sns_topic.alarms.arn]
  ok_actions          = [aws_sns_topic.alarms.arn]

  metric_query {
    id          = "value"
    expression  = each.value.expression
    label       = each.key
    return_data = true
  }

  dynamic "metric_query" {
    for_each = each.value.metrics

    content {
      id = metric_query.key

      metric {
        namespace   = metric_query.value.namespace
        metric_name = metric_query.value.name
        dimensions  = local.dimensions[metric_query.value.namespace]
        stat        = metric_query.value.statistic
        period      = each.value.hours * 3600
      }
    }
  }
}

resource "aws_cloudwatch_dashboard" "crawl" {
  count = var.metrics ? 1 : 0

  dashboard_name = var.name
  dashboard_body = jsonencode({
    widgets = [for i, w in local.widgets : {
      type   = "metric"
      x      = 8 * (i % 3)
      y      = 6 * floor(i / 3)
      width  = 8
      height = 6
      properties = {
        title   = w.title
        region  = data.aws_region.current.id
        metrics = w.metrics
        period  = try(w.period, 300)
        view    = "timeSeries"
      }
    }]
  })
}
