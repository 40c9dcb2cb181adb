# One deployment of Orbweaver on Google Cloud, which 'make deploy CLOUD=gcp' applies. Each of its modules is usable
# alone.

data "google_project" "current" {
  project_id = var.project
}

locals {
  number = data.google_project.current.number
  bucket = coalesce(var.bucket, "${var.name}-${local.number}-${var.region}")

  # Room to grow: slots can move to partitions that a crawl did not begin with.
  mailboxes = coalesce(var.mailboxes, max(2 * var.partitions, 32))

  # Cloud Run gives a service this URL. It is computed, because the service's own environment contains it.
  service_url = "https://${var.name}-work-${local.number}.${var.region}.run.app"
  invoker     = "${var.name}-invoke@${var.project}.iam.gserviceaccount.com"

  # Programs find all other resources by this URL.
  platform = "gcp://${var.project}?bucket=${local.bucket}&name=${var.name}&partitions=${var.partitions}&mailboxes=${local.mailboxes}&region=${var.region}&service=${local.service_url}&account=${local.invoker}"

  # CPUs for some memory: the share that AWS Lambda gives, and at least what Cloud Run requires. Above one CPU there are
  # whole CPUs only. internal/ledger/billing.go has the same rule.
  cpu = coalesce(var.cpu, local.cpus[var.memory_mb])
  cpus = { for m in toset([var.memory_mb, var.query_memory_mb]) : m =>
    m > 8192 ? 4 : m > 4096 ? 2 : m > 1024 ? 1 : max(m > 512 ? 0.5 : 0.08, floor(m * 1000 / 1769) / 1000)
  }
}

module "storage" {
  source = "../../gcp/storage"

  name            = var.name
  region          = var.region
  bucket          = local.bucket
  create_database = var.create_database
  force_destroy   = var.force_destroy
}

module "queues" {
  source = "../../gcp/queues"

  name              = var.name
  region            = var.region
  project_number    = local.number
  mailboxes         = local.mailboxes
  max_concurrency   = var.max_concurrency
  index             = var.index
  index_concurrency = var.index_concurrency
  service_url       = local.service_url
  invoker           = module.functions.invoker
  bucket            = module.storage.bucket
}

module "functions" {
  source = "../../gcp/functions"

  name               = var.name
  project            = var.project
  region             = var.region
  platform           = local.platform
  service_url        = local.service_url
  image              = var.image
  memory_mb          = var.memory_mb
  cpu                = local.cpu
  timeout_s          = var.timeout_s
  max_concurrency    = var.max_concurrency
  index              = var.index
  index_concurrency  = var.index_concurrency
  search_page        = var.search_page
  search_concurrency = var.search_concurrency
  query_memory_mb    = var.query_memory_mb
  query_cpu          = local.cpus[var.query_memory_mb]
  daily_calls        = coalesce(var.daily_calls, 15000 * local.mailboxes)
  allow_net          = var.allow_net
  bucket             = module.storage.bucket
  tasks              = module.queues.tasks
  mailboxes          = module.queues.mailboxes
  dead_letters       = module.queues.dead_letters
}
