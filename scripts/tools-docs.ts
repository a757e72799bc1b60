/** `npm run docs:tools`: writes docs/tools.md from the list of tools. A test checks that the page is up to date. */
import { writeFileSync } from 'node:fs'
import { toolsPage } from './tools-page.js'

writeFileSync(new URL('../docs/tools.md', import.meta.url), await toolsPage())
