# The queues. All are standard queues: delivery at least once, in any order.

data "aws_caller_identity" "current" {}
data "aws_partition" "current" {}
data "aws_region" "current" {}

locals {
  retention_s = 14 * 24 * 3600 # the maximum
  # Upper limit of encoded mail and requests. It is explicit because defaults
  # differ: the service allows 1 MiB, providers before 6.8 set 256 KiB.
  max_message_bytes = 256 * 1024

  account = data.aws_caller_identity.current.account_id
  aws     = "arn:${data.aws_partition.current.partition}"
  region  = data.aws_region.current.id
  queues  = "${local.aws}:sqs:${local.region}:${local.account}"
  rules   = "${local.aws}:events:${local.region}:${local.account}:rule"

  # Timeout of the function that a queue of jobs triggers, by queue. A partition has
  # index jobs and rank jobs.
  jobs = var.index ? { index = var.index_timeout_s, rank = var.rank_timeout_s } : {}
}

# The mailbox of each partition. There is no redrive: a step stores unreadable mail as a dead letter, and no
# other mail is ever dropped, however often a step dies.
resource "aws_sqs_queue" "mailbox" {
  count = var.mailboxes

  name                       = format("%s-mailbox-%05d", var.name, count.index)
  visibility_timeout_seconds = var.mailbox_visibility_s
  message_retention_seconds  = local.retention_s
  max_message_size           = local.max_message_bytes
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn
}

resource "aws_sqs_queue" "dead_letters" {
  name                      = "${var.name}-dead-letters"
  message_retention_seconds = local.retention_s
  max_message_size          = local.max_message_bytes
  sqs_managed_sse_enabled   = var.kms_key_arn == null ? true : null
  kms_master_key_id         = var.kms_key_arn

  # By name, because those queues refer to this one.
  redrive_allow_policy = jsonencode({
    redrivePermission = "byQueue"
    sourceQueueArns   = [for role in concat(["intake", "wakes"], keys(local.jobs)) : "${local.queues}:${var.name}-${role}"]
  })
}

# Wakes are hints to run a step. A delayed wake arrives when there is work.
resource "aws_sqs_queue" "wakes" {
  name                       = "${var.name}-wakes"
  visibility_timeout_seconds = 6 * var.fetch_timeout_s # as AWS recommends
  message_retention_seconds  = local.retention_s
  max_message_size           = local.max_message_bytes
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = 5
  })
}

# Jobs are hints, like wakes.
resource "aws_sqs_queue" "jobs" {
  for_each = local.jobs

  name                       = "${var.name}-${each.key}"
  visibility_timeout_seconds = 6 * each.value
  message_retention_seconds  = local.retention_s
  max_message_size           = local.max_message_bytes
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = 5
  })
}

# Requests from outside.
resource "aws_sqs_queue" "intake" {
  name                       = "${var.name}-intake"
  visibility_timeout_seconds = 6 * var.intake_timeout_s
  message_retention_seconds  = local.retention_s
  max_message_size           = local.max_message_bytes
  sqs_managed_sse_enabled    = var.kms_key_arn == null ? true : null
  kms_master_key_id          = var.kms_key_arn

  redrive_policy = jsonencode({
    deadLetterTargetArn = aws_sqs_queue.dead_letters.arn
    maxReceiveCount     = 5
  })

  # Besides principals with an IAM permission, the bucket may send requests, and so may
  # rules of this account with the names that the module feed gives them.
  policy = jsonencode({
    Version = "2012-10-17"
    Statement = [
      {
        Sid       = "Lists"
        Effect    = "Allow"
        Principal = { Service = "s3.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = "${local.queues}:${var.name}-intake"
        Condition = {
          ArnEquals    = { "aws:SourceArn" = var.bucket_arn }
          StringEquals = { "aws:SourceAccount" = local.account }
        }
      },
      {
        Sid       = "Feeds"
        Effect    = "Allow"
        Principal = { Service = "events.amazonaws.com" }
        Action    = "sqs:SendMessage"
        Resource  = "${local.queues}:${var.name}-intake"
        Condition = {
          ArnLike = { "aws:SourceArn" = ["${local.rules}/${var.name}-feed-*", "${local.rules}/*/${var.name}-feed-*"] } # of the default event bus, and of others
        }
      },
    ]
  })
}

resource "aws_s3_bucket_notification" "lists" {
  bucket = var.bucket

  queue {
    id            = "lists"
    queue_arn     = aws_sqs_queue.intake.arn
    events        = ["s3:ObjectCreated:*"]
    filter_prefix = "lists/"
  }
}
