# What infra/cloud does differently for Google Cloud. It is no program: infra/cloud reads it if CLOUD=gcp is set.

provider="hashicorp/google 6.50"
precious='(queues\.google_pubsub_(topic|subscription)\.(mailbox|intake|dead_letters)|storage\.google_storage_bucket\.)'
apis="run cloudtasks pubsub firestore storage cloudscheduler artifactregistry cloudbuild iam cloudresourcemanager"

# in_profile FIELD - prints a text of the profile file; nothing if there is no file.
in_profile() { if test -e "$profile"; then sed -nE 's/.*"'"$1"'": ?"([a-z0-9-]+)".*/\1/p' "$profile" | head -n 1; fi; }

# configured PROPERTY - prints a setting of gcloud.
configured() { gcloud config get-value "$1" 2>/dev/null | grep -v '(unset)' || true; }

# Project and region are the given ones, those of the deployment, or those of gcloud's configuration, in this order.
identify() {
	need gcloud "install the Google Cloud CLI (cloud.google.com/sdk)"
	test -z "${ARCH:-}${EMAIL:-}" || die "ARCH and EMAIL are for AWS: Cloud Run has amd64 only, and there are no alarms"
	project=${PROJECT:-$(in_profile project)}
	project=${project:-$(configured project)}
	region=${REGION:-$(in_profile region)}
	region=${region:-$(configured run/region)}
	test -n "$project" || die "PROJECT=my-project: name the project"
	test -n "$region" || die "REGION=europe-west1: name the region"
	gcloud projects describe "$project" --format='value(projectNumber)' >/dev/null ||
		die "gcloud cannot read the project $project: check its id, and log in (gcloud auth login)"
	gcloud auth application-default print-access-token >/dev/null 2>&1 ||
		die "there are no Application Default Credentials, which Terraform and orbweaver need: gcloud auth application-default login"
	say "$name: project $project, region $region"
	state_bucket=orbweaver-state-$project
}

create_state_bucket() {
	gcloud storage buckets describe "gs://$state_bucket" --project "$project" >/dev/null 2>&1 && return
	gcloud storage buckets create "gs://$state_bucket" --project "$project" --location "$region" \
		--uniform-bucket-level-access --public-access-prevention >&2 || die "the bucket $state_bucket for the state cannot be created"
	gcloud storage buckets update "gs://$state_bucket" --versioning >&2
}

# backend needs no lock file: the bucket itself has locks.
backend() {
	echo '  backend "gcs" {'
	echo "    bucket = \"$state_bucket\""
	echo '    prefix = "orbweaver"'
	echo '  }'
}

own_vars() { vars+=(-var "project=$project" -var "image=${image:-none}"); }

# build builds the image, which Cloud Build makes of a program that is compiled here. Its tag is the hash of that program, so
# that the same code is pushed once.
build() {
	local folder=bin/google repository=orbweaver tag digest
	say "Enabling services of the project $project ..."
	gcloud services enable ${apis// /.googleapis.com }.googleapis.com --project "$project" >&2
	if ! grep -q '^create_database' "$draft" &&
		! gcloud firestore databases describe --database='(default)' --project "$project" >/dev/null 2>&1; then
		remember create_database true
	fi
	make --no-print-directory build gcp-function TAGS=gcp >&2
	tag=$(cat "$folder/google" "$folder/Dockerfile" | git hash-object --stdin)
	image=$region-docker.pkg.dev/$project/$repository/google
	gcloud artifacts repositories describe "$repository" --location "$region" --project "$project" >/dev/null 2>&1 ||
		gcloud artifacts repositories create "$repository" --location "$region" --project "$project" --repository-format docker >&2
	gcloud artifacts docker images describe "$image:$tag" --project "$project" >/dev/null 2>&1 ||
		gcloud builds submit "$folder" --tag "$image:$tag" --project "$project" >&2
	digest=$(gcloud artifacts docker images describe "$image:$tag" --project "$project" --format='value(image_summary.digest)')
	image+=@$digest
	use "$draft"
}

applied() { :; }

unprotect() {
	"$tf" -chdir="$live" apply -input=false -auto-approve "${vars[@]}" -var force_destroy=true -target=module.storage.google_storage_bucket.objects
}

# The database stays, because other deployments and programs may use it.
destroyed() { gcloud firestore bulk-delete --collection-ids="$name" --database='(default)' --project "$project" --quiet >&2; }

rollback() { die "CLOUD=gcp has no rollback: let the service run an earlier revision (gcloud run services update-traffic $name-work --to-revisions REVISION=100)"; }
restore() { die "CLOUD=gcp has no restore"; }

logs() {
	need gcloud "install the Google Cloud CLI, or look at the service $name-work in the console"
	local minutes=${SINCE:-10} project=${PROJECT:-$(in_profile project)}
	[[ $minutes =~ ^[0-9]+$ ]] || die "SINCE=$minutes: it must be a number of minutes"
	gcloud logging read "resource.type=\"cloud_run_revision\" AND resource.labels.service_name=(\"$name-work\" OR \"$name-search\")" \
		--freshness "${minutes}m" --order asc ${project:+--project "$project"} --format 'value(timestamp,textPayload,jsonPayload)'
}
