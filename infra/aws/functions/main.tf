# The functions with their triggers and permissions.

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  account = data.aws_caller_identity.current.account_id
  region  = data.aws_region.current.id

  # One pattern for all mailboxes, because a thousand names do not fit into a policy: the
  # five characters stand for the number of the partition.
  mailboxes = "arn:${data.aws_partition.current.partition}:sqs:${local.region}:${local.account}:${var.name}-mailbox-?????"

  send    = ["sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:SendMessage"]
  consume = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"]
  table   = ["dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:PutItem"]
  read    = ["dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:BatchGetItem"]
  objects = "${var.bucket_arn}/*"

  # The runs of a partition; the coordinator deletes those that a merged run has replaced.
  runs = "${var.bucket_arn}/*/p?????/r*"

  # Index and ranks are stored below the crawl's id; the functions that write them may write
  # nowhere else.
  index_objects = "${var.bucket_arn}/*/index/*"
  index_records = ["*/index/*"]
  rank_objects  = ["${var.bucket_arn}/*/rank/*", "${var.bucket_arn}/*/ranks/*"]
  rank_records  = ["*/rank", "*/rank/*"]

  functions = { for k, f in local.all : k => f if var.index || !contains(["index", "rank", "query"], k) }

  # Permissions that every function has.
  common = concat(
    # The key encrypts the bucket, the table, the queues and the environment.
    [for key in var.kms_key_arn[*] : { Sid = "Key", Action = ["kms:Decrypt", "kms:GenerateDataKey"], Resource = key }],
    # Lambda attaches a function to a VPC with the function's own role. EC2 knows no narrower resource for most of these actions.
    [for _ in var.vpc[*] : { Sid = "Network", Action = local.network, Resource = "*" }],
  )
  network = [
    "ec2:CreateNetworkInterface", "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets", "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses", "ec2:UnassignPrivateIpAddresses",
  ]

  # With ListBucket a missing object is "not found", without it "forbidden".
  all = {
    fetch = {
      memory_mb = var.memory_mb
      timeout_s = var.fetch_timeout_s
      rights = [
        { Sid = "Mailboxes", Action = distinct(concat(local.send, local.consume)), Resource = local.mailboxes },
        { Sid = "Wakes", Action = distinct(concat(local.send, local.consume)), Resource = var.wakes_arn },
        { Sid = "Records", Action = local.table, Resource = var.table_arn },
        { Sid = "Objects", Action = ["s3:GetObject", "s3:PutObject"], Resource = local.objects },
        { Sid = "Missing", Action = ["s3:ListBucket"], Resource = var.bucket_arn },
      ]
    }
    coordinate = {
      memory_mb = 256
      timeout_s = 60
      rights = [
        { Sid = "Send", Action = local.send, Resource = concat([local.mailboxes, var.wakes_arn], values(var.jobs_arns)) },
        { Sid = "Records", Action = local.table, Resource = var.table_arn },
        { Sid = "Objects", Action = ["s3:GetObject", "s3:PutObject"], Resource = local.objects },
        { Sid = "Runs", Action = ["s3:DeleteObject"], Resource = local.runs },
        { Sid = "Missing", Action = ["s3:ListBucket"], Resource = var.bucket_arn },
      ]
    }
    intake = {
      memory_mb = 512 # the function reads whole lists of URLs
      timeout_s = var.intake_timeout_s
      rights = [
        { Sid = "Requests", Action = concat(local.consume, ["sqs:GetQueueUrl"]), Resource = var.intake_arn },
        { Sid = "Send", Action = local.send, Resource = [local.mailboxes, var.wakes_arn] },
        { Sid = "Records", Action = local.table, Resource = var.table_arn },
        { Sid = "Objects", Action = ["s3:GetObject", "s3:PutObject"], Resource = local.objects },
        { Sid = "Missing", Action = ["s3:ListBucket"], Resource = var.bucket_arn },
      ]
    }
    index = {
      memory_mb = var.index_memory_mb
      timeout_s = var.index_timeout_s
      rights = [
        { Sid = "Jobs", Action = distinct(concat(local.send, local.consume)), Resource = try(var.jobs_arns["index"], "") },
        { Sid = "Records", Action = local.read, Resource = var.table_arn },
        { Sid = "Heads", Action = ["dynamodb:PutItem"], Resource = var.table_arn, Condition = { "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = local.index_records } } },
        { Sid = "Objects", Action = ["s3:GetObject"], Resource = local.objects },
        { Sid = "Segments", Action = ["s3:PutObject", "s3:DeleteObject"], Resource = local.index_objects },
        { Sid = "Missing", Action = ["s3:ListBucket"], Resource = var.bucket_arn },
      ]
    }
    rank = {
      memory_mb = var.rank_memory_mb
      timeout_s = var.rank_timeout_s
      rights = [
        { Sid = "Jobs", Action = distinct(concat(local.send, local.consume)), Resource = try(var.jobs_arns["rank"], "") },
        { Sid = "Records", Action = local.read, Resource = var.table_arn },
        { Sid = "Heads", Action = ["dynamodb:PutItem"], Resource = var.table_arn, Condition = { "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = local.rank_records } } },
        { Sid = "Objects", Action = ["s3:GetObject"], Resource = local.objects },
        { Sid = "Ranks", Action = ["s3:PutObject", "s3:DeleteObject"], Resource = local.rank_objects },
        { Sid = "Missing", Action = ["s3:ListBucket"], Resource = var.bucket_arn },
      ]
    }
    query = {
      memory_mb = var.query_memory_mb
      timeout_s = 30
      rights = [
        { Sid = "Records", Action = local.read, Resource = var.table_arn },
        { Sid = "Objects", Action = ["s3:GetObject"], Resource = local.objects },
        { Sid = "Missing", Action = ["s3:ListBucket"], Resource = var.bucket_arn },
      ]
    }
  }
}

resource "aws_cloudwatch_log_group" "function" {
  for_each = local.functions

  name              = "/aws/lambda/${var.name}-${each.key}"
  retention_in_days = var.log_retention_days
}

# Roles belong to the account, not to the region, so the region is in their names.
resource "aws_iam_role" "function" {
  for_each = local.functions

  name                 = "${var.name}-${local.region}-${each.key}"
  permissions_boundary = var.permissions_boundary

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "lambda.amazonaws.com" }
      Action    = "sts:AssumeRole"
    }]
  })
}

resource "aws_iam_role_policy" "function" {
  for_each = local.functions

  name = "work"
  role = aws_iam_role.function[each.key].id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for s in concat(each.value.rights, local.common, [{
      Sid    = "Logs"
      Action = ["logs:CreateLogStream", "logs:PutLogEvents"]
      # The names of the group's log streams are not known in advance.
      Resource = "${aws_cloudwatch_log_group.function[each.key].arn}:*"
    }]) : merge(s, { Effect = "Allow" })]
  })
}

resource "aws_lambda_function" "function" {
  for_each = local.functions

  function_name    = "${var.name}-${each.key}"
  role             = aws_iam_role.function[each.key].arn
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  filename         = "${var.zips}/${each.key}.zip"
  source_code_hash = filebase64sha256("${var.zips}/${each.key}.zip")
  memory_size      = each.value.memory_mb
  timeout          = each.value.timeout_s
  publish          = true # a version, which a rollback can return to
  kms_key_arn      = var.kms_key_arn

  # Only for the function that strangers may start, so that they cannot use up the account's quota.
  reserved_concurrent_executions = each.key == "query" ? var.search_concurrency : -1

  environment {
    variables = merge(
      { ORBWEAVER_PLATFORM = var.platform },
      each.key == "coordinate" ? { ORBWEAVER_DAILY_CALLS = tostring(var.daily_calls) } : {},
      var.metrics ? { ORBWEAVER_METRICS = var.name } : {},
      length(var.allow_net) > 0 ? { ORBWEAVER_ALLOW_NET = join(",", var.allow_net) } : {},
    )
  }

  dynamic "vpc_config" {
    for_each = var.vpc[*]

    content {
      subnet_ids         = vpc_config.value.subnet_ids
      security_group_ids = vpc_config.value.security_group_ids
    }
  }

  # Without its log group a function creates one that is kept forever, and without its
  # permissions it fails its first events.
  depends_on = [aws_cloudwatch_log_group.function, aws_iam_role_policy.function]
}

# These three send to the queue that starts them, and Lambda would stop each chain of calls after 16.
resource "aws_lambda_function_recursion_config" "chains" {
  for_each = var.emulated ? toset([]) : setintersection(["fetch", "index", "rank"], keys(local.functions))

  function_name  = aws_lambda_function.function[each.key].function_name
  recursive_loop = "Allow"
}

# Triggers start this alias of a function, which names one published version. 'make
# rollback' points it at an earlier version, the next apply at the newest.
resource "aws_lambda_alias" "live" {
  for_each = local.functions

  name             = "live"
  function_name    = aws_lambda_function.function[each.key].function_name
  function_version = aws_lambda_function.function[each.key].version
}

# A batch of one message needs no report of item failures. Without that report, Lambda
# receives fewer messages while calls fail.
resource "aws_lambda_event_source_mapping" "wakes" {
  event_source_arn = var.wakes_arn
  function_name    = aws_lambda_alias.live["fetch"].arn
  batch_size       = 1

  scaling_config {
    maximum_concurrency = var.max_concurrency
  }
}

resource "aws_lambda_event_source_mapping" "intake" {
  event_source_arn        = var.intake_arn
  function_name           = aws_lambda_alias.live["intake"].arn
  batch_size              = 10
  function_response_types = ["ReportBatchItemFailures"]

  scaling_config {
    maximum_concurrency = var.intake_concurrency
  }
}

resource "aws_lambda_event_source_mapping" "jobs" {
  for_each = var.index ? toset(["index", "rank"]) : toset([])

  event_source_arn = var.jobs_arns[each.key]
  function_name    = aws_lambda_alias.live[each.key].arn
  batch_size       = 1

  scaling_config {
    maximum_concurrency = var.index_concurrency
  }
}

# The URL of the search page. Lambda checks callers by IAM, or admits everybody.
resource "aws_lambda_function_url" "search" {
  count = var.index && var.search_page != "none" ? 1 : 0

  function_name      = aws_lambda_alias.live["query"].function_name
  qualifier          = aws_lambda_alias.live["query"].name
  authorization_type = var.search_page == "public" ? "NONE" : "AWS_IAM"

  # The provider grants access to a public URL only when it creates the URL.
  lifecycle {
    replace_triggered_by = [terraform_data.search_page]
  }

  depends_on = [aws_lambda_permission.search]
}

resource "terraform_data" "search_page" {
  input = var.search_page
}

# A public URL needs two grants to everybody. This is the first. It has the id of the
# statement that the provider adds by itself and never removes; the provider accepts that
# the statement exists, and Terraform removes it when the page is no longer public.
# Provider 5 cannot express the second grant (lambda:InvokeFunction, only through the URL):
# infra/cloud adds and removes it.
resource "aws_lambda_permission" "search" {
  count = var.index && var.search_page == "public" ? 1 : 0

  statement_id           = "FunctionURLAllowPublicAccess"
  action                 = "lambda:InvokeFunctionUrl"
  function_name          = aws_lambda_alias.live["query"].function_name
  qualifier              = aws_lambda_alias.live["query"].name
  principal              = "*"
  function_url_auth_type = "NONE"
}

# The coordinator's schedule. A failed run is not retried, because the next one starts within a minute.
resource "aws_lambda_function_event_invoke_config" "coordinate" {
  function_name                = aws_lambda_alias.live["coordinate"].function_name
  qualifier                    = aws_lambda_alias.live["coordinate"].name
  maximum_event_age_in_seconds = 60
  maximum_retry_attempts       = 0
}

# A group of its own, because only groups have tags and can be trusted by name.
resource "aws_scheduler_schedule_group" "tick" {
  name = var.name
}

resource "aws_iam_role" "tick" {
  name                 = "${var.name}-${local.region}-tick"
  permissions_boundary = var.permissions_boundary

  assume_role_policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Effect    = "Allow"
      Principal = { Service = "scheduler.amazonaws.com" }
      Action    = "sts:AssumeRole"
      Condition = {
        StringEquals = {
          "aws:SourceAccount" = local.account
          "aws:SourceArn"     = aws_scheduler_schedule_group.tick.arn
        }
      }
    }]
  })
}

resource "aws_iam_role_policy" "tick" {
  name = "invoke"
  role = aws_iam_role.tick.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [{
      Sid      = "Tick"
      Effect   = "Allow"
      Action   = "lambda:InvokeFunction"
      Resource = aws_lambda_alias.live["coordinate"].arn
    }]
  })
}

resource "aws_scheduler_schedule" "tick" {
  name                = "${var.name}-tick"
  group_name          = aws_scheduler_schedule_group.tick.name
  schedule_expression = "rate(1 minute)"

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_lambda_alias.live["coordinate"].arn
    role_arn = aws_iam_role.tick.arn

    retry_policy {
      maximum_event_age_in_seconds = 60
      maximum_retry_attempts       = 0
    }
  }

  depends_on = [aws_iam_role_policy.tick]
}
