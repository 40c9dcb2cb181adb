// Follows all links of all pages, and stores each body in a file:
//
//	node crawlee.mjs AGENT CONNECTIONS FOLDER SEED...
import { CheerioCrawler, Configuration, LogLevel, log } from '@crawlee/cheerio';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';

const [agent, connections, folder, ...seeds] = process.argv.slice(2);
mkdirSync(`${folder}/files`, { recursive: true });
log.setLevel(LogLevel.WARNING);
const config = new Configuration({ purgeOnStart: false, storageClientOptions: { localDataDirectory: `${folder}/storage` } });
const crawler = new CheerioCrawler({
	minConcurrency: Number(connections),
	maxConcurrency: Number(connections),
	maxRequestRetries: 1,
	requestHandlerTimeoutSecs: 20,
	useSessionPool: false,
	respectRobotsTxtFile: { userAgent: agent },
	preNavigationHooks: [(_, options) => { options.useHeaderGenerator = false; options.headers = { 'user-agent': agent }; }],
	requestHandler: async ({ request, body, enqueueLinks }) => {
		writeFileSync(`${folder}/files/${createHash('sha1').update(request.url).digest('hex')}`, body);
		await enqueueLinks({ strategy: 'all', selector: 'a:not([rel~=nofollow]), area' });
	},
}, config);
await crawler.run(seeds);
