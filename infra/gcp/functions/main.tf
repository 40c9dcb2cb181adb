# The services, and the schedule of the coordinator. One service does all the work of a crawl.

locals {
  # Shares of the service's instances: steps, jobs of index and rank, two requests and a coordinator run.
  instances = var.max_concurrency + (var.index ? 2 * var.index_concurrency : 0) + 3

  common = merge(
    { ORBWEAVER_PLATFORM = var.platform },
    length(var.allow_net) > 0 ? { ORBWEAVER_ALLOW_NET = join(",", var.allow_net) } : {},
  )

  services = merge({
    work = {
      account   = google_service_account.work.email
      memory_mb = var.memory_mb
      cpu       = var.cpu
      timeout   = "1800s" # the longest that Cloud Tasks waits
      instances = local.instances
      ingress   = "INGRESS_TRAFFIC_INTERNAL_ONLY" # Cloud Tasks, Pub/Sub and Cloud Scheduler of the project
      argument  = "work"
      environment = merge(local.common, {
        ORBWEAVER_DAILY_CALLS = tostring(var.daily_calls)
        ORBWEAVER_MEMORY_MB   = tostring(var.memory_mb)
        ORBWEAVER_TIME_LIMIT  = tostring(var.timeout_s)
      })
    }
    }, var.search_page == "none" ? {} : {
    search = {
      account   = one(google_service_account.search[*].email)
      memory_mb = var.query_memory_mb
      cpu       = var.query_cpu
      timeout   = "30s"
      instances = var.search_concurrency
      ingress   = "INGRESS_TRAFFIC_ALL"
      argument  = "query"
      environment = merge(local.common, {
        ORBWEAVER_MEMORY_MB  = tostring(var.query_memory_mb)
        ORBWEAVER_TIME_LIMIT = "30"
      })
    }
  })
}

resource "google_cloud_run_v2_service" "service" {
  for_each = local.services

  name                = "${var.name}-${each.key}"
  location            = var.region
  ingress             = each.value.ingress
  deletion_protection = false # a service holds nothing

  # The program verifies the tokens of its callers. Cloud Run's own check may remove their signatures.
  invoker_iam_disabled = each.key == "work"

  template {
    service_account                  = each.value.account
    timeout                          = each.value.timeout
    max_instance_request_concurrency = 1                            # a fraction of a CPU allows no more
    execution_environment            = "EXECUTION_ENVIRONMENT_GEN1" # which a fraction of a CPU needs

    scaling {
      max_instance_count = each.value.instances
    }

    containers {
      image = var.image
      args  = [each.value.argument]

      resources {
        cpu_idle = true # a CPU only during requests

        limits = {
          cpu    = tostring(each.value.cpu)
          memory = "${each.value.memory_mb}Mi"
        }
      }

      dynamic "env" {
        for_each = each.value.environment

        content {
          name  = env.key
          value = env.value
        }
      }
    }
  }

  # Without its rights the service fails its first calls.
  depends_on = [
    google_project_iam_member.records,
    google_storage_bucket_iam_member.objects,
    google_pubsub_subscription_iam_member.mailbox,
    google_pubsub_topic_iam_member.send,
    google_cloud_tasks_queue_iam_member.tasks,
  ]
}

# A failed run is not retried, because the next one starts within a minute.
resource "google_cloud_scheduler_job" "tick" {
  name             = "${var.name}-tick"
  region           = var.region
  schedule         = "* * * * *"
  time_zone        = "Etc/UTC"
  attempt_deadline = "120s"

  retry_config {
    retry_count = 0
  }

  http_target {
    http_method = "POST"
    uri         = "${var.service_url}/coordinate"

    oidc_token {
      service_account_email = google_service_account.invoke.email
      audience              = var.service_url
    }
  }
}
