// Follows all links of all pages, and stores answers in a WARC file:
//
//	spider AGENT CONNECTIONS FOLDER SEED
use spider::utils::warc::WarcConfig;
use spider::website::Website;

#[tokio::main]
async fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mut website = Website::new(&args[4]);
    website
        .with_user_agent(Some(&args[1]))
        .with_respect_robots_txt(true)
        .with_external_domains(Some(vec!["*".to_string()].into_iter()))
        .with_concurrency_limit(args[2].parse().ok())
        .with_depth(0)
        .with_request_timeout(Some(std::time::Duration::from_secs(20)));
    website.configuration.with_warc(WarcConfig { path: format!("{}/pages.warc", args[3]), ..Default::default() });
    website.crawl().await;
}
