// Copies the files that assets.json names from npm's packages into ../assets, which
// the next build embeds. A file that is not the one whose hash is written down is
// refused here, as a browser would refuse it from a CDN.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename } from 'node:path';

const read = (path) => readFileSync(new URL(path, import.meta.url));

mkdirSync(new URL('../assets/', import.meta.url), { recursive: true });
for (const asset of JSON.parse(read('assets.json'))) {
  const folder = `node_modules/${asset.package}`;
  const { version } = JSON.parse(read(`${folder}/package.json`));
  if (version !== asset.version) {
    throw new Error(`${asset.package} ${version} is installed, and assets.json names ${asset.version}`);
  }
  const content = read(`${folder}/${asset.path}`);
  const integrity = `sha384-${createHash('sha384').update(content).digest('base64')}`;
  if (integrity !== asset.integrity) {
    throw new Error(`${asset.package}/${asset.path} has ${integrity}, and assets.json names ${asset.integrity}`);
  }
  writeFileSync(new URL(`../assets/${basename(asset.path)}`, import.meta.url), content);
}
