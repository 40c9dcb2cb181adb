# The function inbound with its URL, its schedule and its permissions. It is not part of a
# deployment: use it from a folder of its own.

data "aws_region" "current" {}

locals {
  profile = jsondecode(file(var.profile))
  # aws://NAME?bucket=BUCKET&partitions=N
  name = regex("^aws://([^?/]+)", local.profile.platform)[0]
}

data "aws_sqs_queue" "intake" {
  name = "${local.name}-intake"
}

data "aws_dynamodb_table" "records" {
  name = local.name
}

data "aws_s3_bucket" "objects" {
  bucket = local.profile.bucket
}

resource "aws_cloudwatch_log_group" "inbound" {
  name              = "/aws/lambda/${local.name}-inbound"
  retention_in_days = 14
}

resource "aws_iam_role" "inbound" {
  name                 = "${local.name}-${data.aws_region.current.id}-inbound"
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

# It reads the crawl, sends requests, and writes the record of the claims; nothing else.
resource "aws_iam_role_policy" "inbound" {
  name = "work"
  role = aws_iam_role.inbound.id

  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [for s in [
      { Sid = "Send", Action = ["sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:SendMessage"], Resource = data.aws_sqs_queue.intake.arn },
      { Sid = "Records", Action = ["dynamodb:DescribeTable", "dynamodb:GetItem", "dynamodb:BatchGetItem"], Resource = data.aws_dynamodb_table.records.arn },
      { Sid = "Claims", Action = ["dynamodb:PutItem"], Resource = data.aws_dynamodb_table.records.arn, Condition = { "ForAllValues:StringLike" = { "dynamodb:LeadingKeys" = ["*/claims"] } } },
      { Sid = "Objects", Action = ["s3:GetObject"], Resource = "${data.aws_s3_bucket.objects.arn}/*" },
      { Sid = "Missing", Action = ["s3:ListBucket"], Resource = data.aws_s3_bucket.objects.arn },
      { Sid = "Logs", Action = ["logs:CreateLogStream", "logs:PutLogEvents"], Resource = "${aws_cloudwatch_log_group.inbound.arn}:*" },
    ] : merge(s, { Effect = "Allow" })]
  })
}

resource "aws_lambda_function" "inbound" {
  function_name    = "${local.name}-inbound"
  role             = aws_iam_role.inbound.arn
  runtime          = "provided.al2023"
  handler          = "bootstrap"
  architectures    = [var.architecture]
  filename         = var.zip
  source_code_hash = filebase64sha256(var.zip)
  memory_size      = 256
  timeout          = 30
  publish          = true

  # Strangers may start it, so it cannot use up the account's quota.
  reserved_concurrent_executions = var.concurrency

  environment {
    variables = merge(
      { ORBWEAVER_PLATFORM = local.profile.platform },
      var.token == null ? {} : { ORBWEAVER_INBOUND_TOKEN = var.token },
    )
  }

  depends_on = [aws_cloudwatch_log_group.inbound, aws_iam_role_policy.inbound]
}

resource "aws_lambda_alias" "live" {
  name             = "live"
  function_name    = aws_lambda_function.inbound.function_name
  function_version = aws_lambda_function.inbound.version
}

resource "aws_lambda_function_url" "inbound" {
  count = var.url != "none" ? 1 : 0

  function_name      = aws_lambda_alias.live.function_name
  qualifier          = aws_lambda_alias.live.name
  authorization_type = var.url == "public" ? "NONE" : "AWS_IAM"
}

# The first of two grants to everybody; 'account grant' makes the second. See the function query.
resource "aws_lambda_permission" "url" {
  count = var.url == "public" ? 1 : 0

  statement_id           = "FunctionURLAllowPublicAccess"
  action                 = "lambda:InvokeFunctionUrl"
  function_name          = aws_lambda_alias.live.function_name
  qualifier              = aws_lambda_alias.live.name
  principal              = "*"
  function_url_auth_type = "NONE"
}

# Each minute the function looks for keys that have arrived.
resource "aws_cloudwatch_event_rule" "settle" {
  name                = "${local.name}-inbound"
  schedule_expression = "rate(1 minute)"
}

resource "aws_cloudwatch_event_target" "settle" {
  rule  = aws_cloudwatch_event_rule.settle.name
  arn   = aws_lambda_alias.live.arn
  input = "{}"
}

resource "aws_lambda_permission" "settle" {
  statement_id  = "Schedule"
  action        = "lambda:InvokeFunction"
  function_name = aws_lambda_alias.live.function_name
  qualifier     = aws_lambda_alias.live.name
  principal     = "events.amazonaws.com"
  source_arn    = aws_cloudwatch_event_rule.settle.arn
}

output "url" {
  description = "URL of the endpoint; null without one."
  value       = one(aws_lambda_function_url.inbound[*].function_url)
}
