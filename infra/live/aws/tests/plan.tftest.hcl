# Tests of the plan for a real account. The provider is mocked, so they need no account and no emulator. 'go
# test ./infra' runs them if Terraform and the provider are installed.

mock_provider "aws" {
  mock_data "aws_caller_identity" {
    defaults = { account_id = "111122223333" }
  }
  mock_data "aws_region" {
    defaults = { id = "eu-central-1" }
  }
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_servicequotas_service_quota" {
    defaults = { value = 1000 }
  }
}

variables {
  name = "orbweaver"
}

run "an_old_account" {
  command = plan

  assert {
    condition     = output.max_concurrency == 8
    error_message = "a quota of 1000 caps nothing"
  }
}

# Ten: the tick 1, the intake 2, index and rank 2 each, and 3 steps.
run "a_new_account" {
  command = plan

  override_data {
    target = data.aws_servicequotas_service_quota.concurrency
    values = { value = 10 }
  }

  expect_failures = [check.concurrency]

  assert {
    condition     = output.max_concurrency == 3
    error_message = "a quota of 10 leaves 3 steps"
  }
}

run "a_new_account_with_a_page" {
  command = plan

  variables {
    concurrency_quota = 10
    search_page       = "iam"
    index_concurrency = 4
  }

  expect_failures = [check.concurrency]

  assert {
    condition     = output.max_concurrency == 2 && local.indexes == 2
    error_message = "a search needs one of 10, so 2 steps are left"
  }
}

run "a_larger_account" {
  command = plan

  variables {
    concurrency_quota  = 100
    max_concurrency    = 80
    index_concurrency  = 10
    search_concurrency = 5
  }

  expect_failures = [check.concurrency]

  assert {
    condition     = output.max_concurrency == 72 && local.indexes == 10
    error_message = "100 less 1, 2, 20 and the 5 that are set aside for searches are 72"
  }
}

run "too_small_an_account" {
  command = plan

  variables {
    concurrency_quota = 8
  }

  expect_failures = [check.concurrency, output.platform]
}

run "a_small_account_without_an_index" {
  command = plan

  variables {
    concurrency_quota = 5
    max_concurrency   = 2
    index             = false
  }
}

run "alarms" {
  command = plan

  module {
    source = "../../aws/watch"
  }

  variables {
    functions          = ["fetch", "coordinate", "intake", "index", "rank", "query"]
    metrics            = false
    daily_cost_usd     = 5
    alarms             = true
    alarm_email        = ""
    monthly_budget_usd = 0
    budget_by_tag      = false
  }

  assert {
    condition = alltrue([for f in var.functions : alltrue([for metric in ["Errors", "Throttles"] : anytrue([
      for a in aws_cloudwatch_metric_alarm.failing : a.metric_name == metric && lookup(a.dimensions, "FunctionName", "") == "orbweaver-${f}"
    ])])])
    error_message = "a function has no alarm for its errors, or for its throttles"
  }
  assert {
    condition     = length(aws_cloudwatch_metric_alarm.failing) + length(aws_cloudwatch_metric_alarm.tick) == 20
    error_message = "the estimate and the documents speak of 20 alarms"
  }
  assert {
    condition = anytrue([
      for a in aws_cloudwatch_metric_alarm.failing : a.metric_name == "AsyncEventsDropped" && lookup(a.dimensions, "FunctionName", "") == "orbweaver-coordinate"
    ])
    error_message = "no alarm tells that ticks are dropped"
  }
  assert {
    condition     = length(aws_cloudwatch_metric_alarm.figures) + length(aws_cloudwatch_dashboard.crawl) == 0
    error_message = "there are alarms on metrics that nobody writes"
  }
}

run "metrics" {
  command = plan

  module {
    source = "../../aws/watch"
  }

  variables {
    functions          = ["fetch", "coordinate", "intake"]
    metrics            = true
    daily_cost_usd     = 2
    alarms             = true
    alarm_email        = ""
    monthly_budget_usd = 0
    budget_by_tag      = false
  }

  assert {
    condition     = join(" ", keys(aws_cloudwatch_metric_alarm.figures)) == "cost refusing stalled throttled"
    error_message = "other alarms than the documents name"
  }
  assert {
    condition = alltrue([for a in aws_cloudwatch_metric_alarm.figures : alltrue([
      for q in a.metric_query : length(q.metric) == 0 || strcontains(one([for e in a.metric_query : e.expression if e.id == "value"]), q.id)
    ])])
    error_message = "an expression does not use one of its metrics"
  }
  assert {
    condition     = length(jsondecode(aws_cloudwatch_dashboard.crawl[0].dashboard_body).widgets) == 12 && aws_cloudwatch_metric_alarm.figures["cost"].threshold == 2
    error_message = "the dashboard has other widgets, or the alarm another threshold"
  }
}

run "storage" {
  command = plan

  module {
    source = "../../aws/storage"
  }

  variables {
    bucket              = "orbweaver-111122223333"
    force_destroy       = false
    deletion_protection = true
    recovery_days       = 7
    table_backups       = true
    kms_key_arn         = null
    warc_lifecycle      = {}
  }

  assert {
    condition     = aws_dynamodb_table.records.point_in_time_recovery[0].enabled && aws_dynamodb_table.records.point_in_time_recovery[0].recovery_period_in_days == 7
    error_message = "the table has no backups of seven days"
  }
  assert {
    condition     = aws_s3_bucket_versioning.objects.versioning_configuration[0].status == "Enabled"
    error_message = "the bucket does not keep what is deleted"
  }
  assert {
    condition     = one(flatten([for r in aws_s3_bucket_lifecycle_configuration.objects.rule : r.noncurrent_version_expiration[*].noncurrent_days])) == 8
    error_message = "deleted objects must stay as long as the backups of the table, and a day more"
  }
}

run "functions" {
  command = plan

  module {
    source = "../../aws/functions"
  }

  variables {
    platform             = "aws://orbweaver"
    architecture         = "arm64"
    memory_mb            = 512
    fetch_timeout_s      = 300
    intake_timeout_s     = 120
    max_concurrency      = 8
    intake_concurrency   = 2
    index                = true
    index_memory_mb      = 1024
    rank_memory_mb       = 1024
    query_memory_mb      = 1024
    index_timeout_s      = 300
    rank_timeout_s       = 300
    index_concurrency    = 2
    search_page          = "public"
    search_concurrency   = -1
    log_retention_days   = 14
    daily_calls          = 1000000
    metrics              = true
    emulated             = false
    allow_net            = []
    table_arn            = "arn:aws:dynamodb:eu-central-1:111122223333:table/orbweaver"
    bucket_arn           = "arn:aws:s3:::orbweaver-111122223333"
    wakes_arn            = "arn:aws:sqs:eu-central-1:111122223333:orbweaver-wakes"
    intake_arn           = "arn:aws:sqs:eu-central-1:111122223333:orbweaver-intake"
    jobs_arns            = { index = "arn:aws:sqs:eu-central-1:111122223333:orbweaver-index", rank = "arn:aws:sqs:eu-central-1:111122223333:orbweaver-rank" }
    permissions_boundary = "arn:aws:iam::111122223333:policy/boundary"
    vpc                  = { subnet_ids = ["subnet-1", "subnet-2"], security_group_ids = ["sg-1"] }
    kms_key_arn          = "arn:aws:kms:eu-central-1:111122223333:key/1234abcd-12ab-34cd-56ef-1234567890ab"
  }

  assert {
    condition     = alltrue([for f in aws_lambda_function.function : f.environment[0].variables.ORBWEAVER_METRICS == var.name])
    error_message = "a function writes no metrics"
  }
  assert {
    condition     = alltrue([for f in aws_lambda_function.function : f.publish && f.kms_key_arn == var.kms_key_arn && length(f.vpc_config[0].subnet_ids) == 2])
    error_message = "a function has no versions, no key or no subnets"
  }
  assert {
    condition     = alltrue([for r in concat(values(aws_iam_role.function), [aws_iam_role.tick]) : r.permissions_boundary == var.permissions_boundary])
    error_message = "a role has no boundary"
  }
  assert {
    condition     = keys(aws_lambda_alias.live) == keys(aws_lambda_function.function)
    error_message = "a function has no alias"
  }
  assert {
    condition     = aws_lambda_function_url.search[0].qualifier == "live" && aws_lambda_permission.search[0].qualifier == "live"
    error_message = "the address is not that of the alias"
  }
  assert {
    condition     = aws_lambda_permission.search[0].statement_id == "FunctionURLAllowPublicAccess"
    error_message = "the grant must have the id that the provider uses: else it adds one that nobody removes"
  }
}
