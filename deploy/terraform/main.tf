# A drivewatt service by a generic REST provider: every resource has a name that the client chooses,
# and one PUT makes it as well as changes it.

terraform {
  required_providers {
    restapi = { source = "Mastercard/restapi" }
  }
}

variable "url" {
  default = "http://127.0.0.1:8484"
}

variable "token" {
  description = "An API token of an administrator, or of an operator where no hosts are put"
  sensitive   = true
}

variable "drive" {
  description = "A drive's id, as GET /api/v1/drives shows it"
}

provider "restapi" {
  uri                  = var.url
  headers              = { Authorization = "Bearer ${var.token}" }
  create_method        = "PUT"
  update_method        = "PUT"
  write_returns_object = true
}

resource "restapi_object" "archive" {
  path        = "/api/v1/policies"
  object_id   = "archive"
  create_path = "/api/v1/policies/archive"
  data = jsonencode({
    priority = 10
    selector = { labels = { tier = "archive" } }
    desired  = { limit_w = 12 }
  })
}

# Any UUID, chosen once.
locals {
  rack1_7 = "b2f0c7de-6f0e-4c61-9a4b-5a0d3a6c1e07"
}

resource "restapi_object" "rack1_7" {
  path        = "/api/v1/hosts"
  object_id   = local.rack1_7
  create_path = "/api/v1/hosts/${local.rack1_7}"
  data = jsonencode({
    name   = "rack1-7"
    labels = { rack = "1" }
  })
}

resource "restapi_object" "desired" {
  path        = "/api/v1/drives/${var.drive}/power"
  object_id   = "desired"
  create_path = "/api/v1/drives/${var.drive}/power/desired"
  data        = jsonencode({ state = 1 })
}
