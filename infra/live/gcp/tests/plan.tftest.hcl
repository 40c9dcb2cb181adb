# Tests of the plan. The provider is mocked, so they need no account. 'make gcp-check' runs them with a stand-in for
# the provider that knows the arguments of its resources.

mock_provider "google" {
  mock_data "google_project" {
    defaults = { number = "111122223333" }
  }
}

variables {
  project = "my-project"
  region  = "europe-west1"
  image   = "europe-west1-docker.pkg.dev/my-project/orbweaver/google@sha256:0"
}

run "defaults" {
  command = plan

  assert {
    condition     = output.platform == "gcp://my-project?bucket=orbweaver-111122223333-europe-west1&name=orbweaver&partitions=16&mailboxes=32&region=europe-west1&service=https://orbweaver-work-111122223333.europe-west1.run.app&account=orbweaver-invoke@my-project.iam.gserviceaccount.com"
    error_message = output.platform
  }

  assert {
    condition     = output.profile.platform == output.platform && length(output.profile.queues.mailboxes) == 32 && output.profile.queues.mailboxes[31] == "orbweaver-mailbox-00031"
    error_message = "the profile has the URL and 32 mailboxes"
  }

  assert {
    condition     = output.profile.queues.tasks == { wakes = "orbweaver-wakes", index = "orbweaver-index", rank = "orbweaver-rank" }
    error_message = "the queues of tasks"
  }

  assert {
    condition     = output.cpu == 0.289
    error_message = "512 MB have the CPU of a function with 512 MB on AWS"
  }

  assert {
    condition     = output.profile.services == { work = "orbweaver-work" }
    error_message = "the search page is off by default"
  }

  assert {
    condition     = output.profile.queues.intake == "orbweaver-intake" && output.profile.queues.dead_letters == "orbweaver-dead-letters"
    error_message = "the queues of requests and dead letters"
  }
}

run "small" {
  command = plan

  variables {
    name       = "a-name-of-23-characters"
    partitions = 1
    mailboxes  = 1
    index      = false
    memory_mb  = 640
  }

  assert {
    condition     = output.cpu == 0.5
    error_message = "above 512 MB Cloud Run requires half a CPU"
  }

  assert {
    condition     = output.profile.queues.tasks == { wakes = "a-name-of-23-characters-wakes" }
    error_message = "without an index there are no jobs"
  }
}

run "with_a_page" {
  command = plan

  variables {
    search_page     = "public"
    create_database = true
    memory_mb       = 2048
    query_memory_mb = 2048
  }

  assert {
    condition     = output.cpu == 1
    error_message = "2048 MB have one CPU"
  }

  assert {
    condition     = output.profile.services == { work = "orbweaver-work", search = "orbweaver-search" }
    error_message = "there is a service for searches"
  }
}

run "a_page_without_an_index" {
  command = plan

  variables {
    index       = false
    search_page = "iam"
  }

  expect_failures = [output.platform]
}

run "too_few_mailboxes" {
  command = plan

  variables {
    partitions = 64
    mailboxes  = 32
  }

  expect_failures = [output.platform]
}

run "a_name_that_is_too_long" {
  command = plan

  variables {
    name = "a-name-of-24-characters-"
  }

  expect_failures = [var.name]
}

run "one_and_a_half_cpus" {
  command = plan

  variables {
    cpu = 1.5
  }

  expect_failures = [var.cpu]
}
