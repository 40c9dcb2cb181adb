terraform {
  required_version = ">= 1.5"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "~> 5.100"
    }
  }
}

# Credentials and endpoints come from the standard environment: AWS_PROFILE,
# AWS_ENDPOINT_URL, AWS_ENDPOINT_URL_DYNAMODB and so on.
provider "aws" {
  region = var.region

  skip_credentials_validation = var.emulated
  skip_metadata_api_check     = var.emulated
  s3_use_path_style           = var.emulated

  default_tags {
    tags = merge(var.tags, { orbweaver = var.name })
  }
}
