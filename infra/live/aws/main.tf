# One deployment of Orbweaver on AWS. Each module is usable alone; this puts them
# together and is what 'make deploy' applies.

data "aws_caller_identity" "current" {}
data "aws_region" "current" {}

locals {
  region = data.aws_region.current.id
  bucket = coalesce(var.bucket, "${var.name}-${data.aws_caller_identity.current.account_id}-${local.region}")

  # Room to grow: slots can move to partitions that a crawl did not begin with.
  mailboxes = coalesce(var.mailboxes, max(2 * var.partitions, 32))

  # What a program needs to find all the rest.
  platform = "aws://${var.name}?bucket=${local.bucket}&partitions=${var.partitions}&mailboxes=${local.mailboxes}&region=${local.region}"

  intake_timeout_s = 120
  index_timeout_s  = 300
  rank_timeout_s   = 300
}

module "storage" {
  source = "../../aws/storage"

  name                   = var.name
  bucket                 = local.bucket
  force_destroy          = var.force_destroy
  deletion_protection    = var.deletion_protection
  point_in_time_recovery = var.point_in_time_recovery
  warc_lifecycle         = var.warc_lifecycle
}

module "queues" {
  source = "../../aws/queues"

  name            = var.name
  mailboxes       = local.mailboxes
  fetch_timeout_s = var.timeout_s

  mailbox_visibility_s = var.mailbox_visibility_s

  index           = var.index
  index_timeout_s = local.index_timeout_s
  rank_timeout_s  = local.rank_timeout_s

  intake_timeout_s = local.intake_timeout_s
  bucket           = module.storage.bucket
  bucket_arn       = module.storage.bucket_arn
}

module "functions" {
  source = "../../aws/functions"

  name               = var.name
  platform           = local.platform
  zips               = coalesce(var.zips, "${path.module}/../../../bin/functions")
  architecture       = var.architecture
  memory_mb          = var.memory_mb
  fetch_timeout_s    = var.timeout_s
  intake_timeout_s   = local.intake_timeout_s
  max_concurrency    = var.max_concurrency
  index              = var.index
  index_memory_mb    = var.index_memory_mb
  rank_memory_mb     = var.rank_memory_mb
  query_memory_mb    = var.query_memory_mb
  index_timeout_s    = local.index_timeout_s
  rank_timeout_s     = local.rank_timeout_s
  index_concurrency  = var.index_concurrency
  search_page        = var.search_page
  search_concurrency = var.search_concurrency
  log_retention_days = var.log_retention_days
  allow_net          = var.allow_net
  daily_calls        = coalesce(var.daily_calls, 15000 * local.mailboxes)
  emulated           = var.emulated
  table_arn          = module.storage.table_arn
  bucket_arn         = module.storage.bucket_arn
  wakes_arn          = module.queues.wakes_arn
  intake_arn         = module.queues.intake_arn
  jobs_arns          = module.queues.jobs_arns
}

module "watch" {
  source = "../../aws/watch"

  name               = var.name
  alarms             = var.alarms
  index              = var.index
  alarm_email        = var.alarm_email
  monthly_budget_usd = var.monthly_budget_usd
  budget_by_tag      = var.budget_by_tag
}
