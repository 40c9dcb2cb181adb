# One deployment of Orbweaver on AWS, which 'make deploy' applies. Each of its modules is
# usable alone.

data "aws_caller_identity" "current" {}
data "aws_region" "current" {}

locals {
  region = data.aws_region.current.id
  bucket = coalesce(var.bucket, "${var.name}-${data.aws_caller_identity.current.account_id}-${local.region}")

  # Room to grow: slots can move to partitions that a crawl did not begin with.
  mailboxes = coalesce(var.mailboxes, max(2 * var.partitions, 32))

  # Programs find all other resources by this URL.
  platform = "aws://${var.name}?bucket=${local.bucket}&partitions=${var.partitions}&mailboxes=${local.mailboxes}&region=${local.region}"

  # Shares of the account's quota of concurrent functions: one for the coordinator, one for
  # searches unless theirs is reserved, two for the intake, at least two each for index and
  # rank, and the rest for steps.
  quota   = coalesce(var.concurrency_quota, one(data.aws_servicequotas_service_quota.concurrency[*].value), 1000)
  search  = max(var.search_page == "none" ? 0 : 1, var.search_concurrency)
  shared  = local.quota - 1 - local.intake_concurrency - local.search
  fewest  = 2 # allowed for an event source mapping
  indexes = var.index ? max(local.fewest, min(var.index_concurrency, floor((local.shared - local.fewest) / 2))) : 0
  steps   = max(local.fewest, min(var.max_concurrency, local.shared - 2 * local.indexes))

  intake_concurrency = 2 # more would only race for the same records

  # The versions that this apply publishes, unless they equal the previous ones.
  release = try(var.releases[0], {}) == module.functions.versions ? [] : [module.functions.versions]

  intake_timeout_s = 120
  index_timeout_s  = 300
  rank_timeout_s   = 300
}

data "aws_servicequotas_service_quota" "concurrency" {
  count = var.emulated || var.concurrency_quota != null ? 0 : 1

  service_code = "lambda"
  quota_code   = "L-B99A9384" # Concurrent executions
}

# A warning beside the plan. If the shares do not fit at all, the output platform fails.
check "concurrency" {
  assert {
    condition     = local.steps == var.max_concurrency && (!var.index || local.indexes == var.index_concurrency)
    error_message = "This account may run ${local.quota} functions at once, so max_concurrency is ${local.steps} instead of ${var.max_concurrency}${var.index ? ", index_concurrency ${local.indexes} instead of ${var.index_concurrency}" : ""}. To raise the limit, request an increase of \"Concurrent executions\" of AWS Lambda in Service Quotas, and deploy again."
  }
}

module "storage" {
  source = "../../aws/storage"

  name                = var.name
  bucket              = local.bucket
  force_destroy       = var.force_destroy
  deletion_protection = var.deletion_protection
  recovery_days       = var.recovery_days
  table_backups       = !var.emulated
  kms_key_arn         = var.kms_key_arn
  warc_lifecycle      = var.warc_lifecycle
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
  kms_key_arn      = var.kms_key_arn
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
  max_concurrency    = local.steps
  intake_concurrency = local.intake_concurrency
  index              = var.index
  index_memory_mb    = var.index_memory_mb
  rank_memory_mb     = var.rank_memory_mb
  query_memory_mb    = var.query_memory_mb
  index_timeout_s    = local.index_timeout_s
  rank_timeout_s     = local.rank_timeout_s
  index_concurrency  = local.indexes
  search_page        = var.search_page
  search_concurrency = var.search_concurrency
  log_retention_days = var.log_retention_days
  allow_net          = var.allow_net
  daily_calls        = coalesce(var.daily_calls, 15000 * local.mailboxes)
  metrics            = var.metrics
  emulated           = var.emulated
  table_arn          = module.storage.table_arn
  bucket_arn         = module.storage.bucket_arn
  wakes_arn          = module.queues.wakes_arn
  intake_arn         = module.queues.intake_arn
  jobs_arns          = module.queues.jobs_arns

  permissions_boundary = var.permissions_boundary
  vpc                  = var.vpc
  kms_key_arn          = var.kms_key_arn
}

module "watch" {
  source = "../../aws/watch"

  name               = var.name
  alarms             = var.alarms
  metrics            = var.metrics
  daily_cost_usd     = var.daily_cost_usd
  functions          = concat(["fetch", "coordinate", "intake"], var.index ? ["index", "rank", "query"] : [])
  alarm_email        = var.alarm_email
  monthly_budget_usd = var.monthly_budget_usd
  budget_by_tag      = var.budget_by_tag
}
