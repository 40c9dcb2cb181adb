# The state of a crawl: the table of its records and the bucket of its objects.

locals {
  table_backups = var.table_backups && var.recovery_days > 0
}

resource "aws_dynamodb_table" "records" {
  name                        = var.name
  billing_mode                = "PAY_PER_REQUEST"
  hash_key                    = "key"
  deletion_protection_enabled = var.deletion_protection

  attribute {
    name = "key"
    type = "S"
  }

  point_in_time_recovery {
    enabled                 = local.table_backups
    recovery_period_in_days = local.table_backups ? var.recovery_days : null
  }

  dynamic "server_side_encryption" {
    for_each = var.kms_key_arn[*]

    content {
      enabled     = true
      kms_key_arn = server_side_encryption.value
    }
  }
}

resource "aws_s3_bucket" "objects" {
  bucket        = var.bucket
  force_destroy = var.force_destroy
}

resource "aws_s3_bucket_public_access_block" "objects" {
  bucket                  = aws_s3_bucket.objects.id
  block_public_acls       = true
  block_public_policy     = true
  ignore_public_acls      = true
  restrict_public_buckets = true
}

resource "aws_s3_bucket_server_side_encryption_configuration" "objects" {
  bucket = aws_s3_bucket.objects.id

  rule {
    apply_server_side_encryption_by_default {
      sse_algorithm     = var.kms_key_arn == null ? "AES256" : "aws:kms" # the service's own keys cost nothing and need no permission
      kms_master_key_id = var.kms_key_arn
    }

    bucket_key_enabled = var.kms_key_arn != null # otherwise every object needs a request to the key
  }
}

# Restored records may name objects that were deleted later. So a deleted object
# stays as a noncurrent version for as long as the table can be restored.
resource "aws_s3_bucket_versioning" "objects" {
  bucket = aws_s3_bucket.objects.id

  versioning_configuration {
    status = var.recovery_days > 0 ? "Enabled" : "Suspended"
  }
}

resource "aws_s3_bucket_lifecycle_configuration" "objects" {
  bucket = aws_s3_bucket.objects.id

  # Orbweaver puts each object whole. Uploads of other programs may leave parts, which are invisible and would
  # be billed forever.
  rule {
    id     = "abort-uploads"
    status = "Enabled"

    filter {
      prefix = ""
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }

  # One day more than the table, so that the oldest moment can still be restored while the
  # copy runs. With recovery switched off, this rule removes the versions left from before.
  rule {
    id     = "expire-noncurrent"
    status = "Enabled"

    filter {
      prefix = ""
    }

    noncurrent_version_expiration {
      noncurrent_days = var.recovery_days + 1
    }

    expiration {
      expired_object_delete_marker = true
    }
  }

  # One rule per crawl, because a filter is a prefix and names begin with the crawl's id. Only
  # WARC files are affected: without its commits and runs a crawl cannot continue.
  dynamic "rule" {
    for_each = var.warc_lifecycle

    content {
      id     = "warc-${rule.key}"
      status = "Enabled"

      filter {
        prefix = "${rule.key}/warc/"
      }

      dynamic "transition" {
        for_each = rule.value.transition_days[*]

        content {
          days          = transition.value
          storage_class = rule.value.storage_class
        }
      }

      dynamic "expiration" {
        for_each = rule.value.expire_days[*]

        content {
          days = expiration.value
        }
      }
    }
  }

  depends_on = [aws_s3_bucket_versioning.objects] # the rule about versions needs versioning
}
