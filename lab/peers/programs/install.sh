#!/bin/sh
# Installs other crawlers into a folder, from the registries of their languages. What cannot be installed is left out:
#
#	lab/peers/programs/install.sh FOLDER
#
# wget and wget2 come from the system's packages.
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1" && cd "$1" || exit 1

try() { # NAME FUNCTION: in a folder of its own, unless it is there
	test -e "$1/installed" && return
	echo "installing $1"
	rm -rf "$1" && mkdir "$1" && (cd "$1" && set -e && "install_$1" && touch installed) >"$1.log" 2>&1 || echo "$1 was not installed; see $PWD/$1.log"
}

install_scrapy() { python3 -m venv . && bin/pip install --quiet scrapy==2.19.0; }

install_crawlee() { cp "$here/crawlee.mjs" . && npm install --no-audit --no-fund --no-save @crawlee/cheerio@3.18.1; }

install_colly() {
	cp "$here/colly.go.txt" main.go
	go mod init peer && go get github.com/gocolly/colly/v2@v2.3.0 && go build -o colly .
}

install_spider() {
	mkdir src && cp "$here/spider.rs" src/main.rs
	printf '[package]\nname = "peer"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nspider = { version = "=2.53.9", features = ["warc"] }\ntokio = { version = "1", features = ["full"] }\n' >Cargo.toml
	cargo build --release && cp target/release/peer spider && rm -r target
}

install_heritrix() {
	mvn -q -B -f "$here/pom.xml" -P heritrix dependency:copy-dependencies -DoutputDirectory="$PWD/lib"
	unzip -j -q lib/heritrix-engine-*.jar org/archive/crawler/restlet/profile-crawler-beans.cxml
}

install_bubing() {
	cp "$here/logback.xml" .
	mvn -q -B -f "$here/pom.xml" -P bubing dependency:copy-dependencies -DoutputDirectory="$PWD/lib"
}

for name in scrapy crawlee colly spider heritrix bubing; do try "$name"; done
