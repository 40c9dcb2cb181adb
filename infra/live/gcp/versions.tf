terraform {
  required_version = ">= 1.5"

  required_providers {
    google = {
      source  = "hashicorp/google"
      version = "~> 6.50"
    }
  }
}

# Credentials are Application Default Credentials.
provider "google" {
  project        = var.project
  region         = var.region
  default_labels = merge(var.labels, { orbweaver = var.name })
}
