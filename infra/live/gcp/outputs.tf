output "platform" {
  description = "Platform URL of the deployment, for 'orbweaver --platform' and the services."
  value       = local.platform

  precondition {
    condition     = local.mailboxes >= var.partitions
    error_message = "A crawl cannot begin with more partitions than there are mailboxes."
  }

  precondition {
    condition     = var.index || var.search_page == "none"
    error_message = "There is no search page without an index."
  }
}

output "bucket" {
  description = "Name of the bucket."
  value       = module.storage.bucket
}

output "search_page" {
  description = "Access to the search page: none, iam or public."
  value       = var.search_page
}

output "search_url" {
  description = "URL of the search page; null without one."
  value       = module.functions.search_url
}

output "max_concurrency" {
  description = "Highest number of concurrent steps."
  value       = var.max_concurrency
}

output "cpu" {
  description = "CPUs of an instance."
  value       = local.cpu
}

output "settings" {
  description = "Text of NAME.tfvars as it was deployed."
  value       = var.settings
}

output "profile" {
  description = "All outputs, as the profile file holds them."
  value = {
    platform   = local.platform
    name       = var.name
    project    = var.project
    region     = var.region
    bucket     = module.storage.bucket
    collection = module.storage.collection
    services   = module.functions.names
    queues = {
      tasks        = module.queues.tasks
      intake       = module.queues.intake
      dead_letters = module.queues.dead_letters
      mailboxes    = module.queues.mailboxes
    }
    search_url = module.functions.search_url
  }
}
