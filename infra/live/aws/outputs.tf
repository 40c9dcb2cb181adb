output "platform" {
  description = "Platform URL of the deployment, for 'orbweaver --platform' and the functions."
  value       = local.platform

  precondition {
    condition     = var.emulated || length(var.allow_net) == 0
    error_message = "allow_net is for tests with emulators: a deployed crawler must not reach networks that are not public."
  }

  precondition {
    condition     = local.shared >= 2 * local.indexes + local.fewest
    error_message = "This account may run ${local.quota} functions at once, and this deployment needs ${local.quota - local.shared + 2 * local.indexes + local.fewest}${var.index ? " (4 less with index = false)" : ""}. Request an increase of \"Concurrent executions\" of AWS Lambda in Service Quotas."
  }

  precondition {
    condition     = local.mailboxes >= var.partitions
    error_message = "A crawl cannot begin with more partitions than there are mailboxes."
  }

  precondition {
    condition     = var.index || var.search_page == "none"
    error_message = "There is no search page without an index."
  }
}

output "region" {
  description = "Region of the deployment."
  value       = local.region
}

output "bucket" {
  description = "Name of the bucket."
  value       = module.storage.bucket
}

output "table" {
  description = "Name of the table."
  value       = module.storage.table
}

output "queues" {
  description = "URLs of the queues; mailboxes in the order of their partitions."
  value       = module.queues.urls
}

output "functions" {
  description = "Names of the functions."
  value       = module.functions.names
}

output "log_groups" {
  description = "Names of the functions' log groups."
  value       = module.functions.log_groups
}

output "search_url" {
  description = "URL of the search page; null without one."
  value       = module.functions.search_url
}

output "search_page" {
  description = "Access to the search page: none (it has no address), iam or public."
  value       = var.search_page
}

output "schedule" {
  description = "Group and name of the coordinator's schedule."
  value       = module.functions.schedule
}

output "alarm_topic" {
  description = "ARN of the topic of alarms and budget reports."
  value       = module.watch.topic_arn
}

output "max_concurrency" {
  description = "Highest number of concurrent steps, within the quota of the account."
  value       = local.steps
}

output "releases" {
  description = "Versions of the functions by deployment, newest first; 'make rollback' uses them."
  value       = slice(concat(local.release, var.releases), 0, min(5, length(local.release) + length(var.releases)))
}

output "settings" {
  description = "Text of NAME.tfvars as it was deployed."
  value       = var.settings
}

output "profile" {
  description = "All outputs, as the profile file holds them."
  value = {
    platform    = local.platform
    name        = var.name
    region      = local.region
    bucket      = module.storage.bucket
    table       = module.storage.table
    queues      = module.queues.urls
    functions   = module.functions.names
    log_groups  = module.functions.log_groups
    alarm_topic = module.watch.topic_arn
    search_url  = module.functions.search_url
  }
}
