import hashlib
import os

import scrapy
from scrapy.linkextractors import LinkExtractor


class Spider(scrapy.Spider):
    """Follows all links of all pages, and stores each body in a file."""

    name = "peers"

    def __init__(self, seeds="", dir=".", **kwargs):
        super().__init__(**kwargs)
        self.start_urls = seeds.split(",")
        self.files = os.path.join(dir, "files")
        os.makedirs(self.files, exist_ok=True)
        self.links = LinkExtractor(tags=("a", "area", "iframe", "frame"), attrs=("href", "src"), deny_extensions=[])

    def parse(self, response):
        name = hashlib.sha1(response.url.encode()).hexdigest()
        with open(os.path.join(self.files, name), "wb") as f:
            f.write(response.body)
        if isinstance(response, scrapy.http.HtmlResponse):
            for link in self.links.extract_links(response):
                if not link.nofollow:
                    yield scrapy.Request(link.url)
