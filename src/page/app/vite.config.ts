// `npm run build:page`: builds the page from src/page/app into dist/page. The same sources give the same files.
import { defineConfig } from 'vite'
import { machineCharts } from '../../../scripts/chart-plugin.js'

export default defineConfig({
  // The server may serve the page from any path.
  base: './',
  plugins: [machineCharts()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../../../dist/page',
    emptyOutDir: true,
    target: 'es2022',
    // The content security policy of the page allows no data: and no inline code.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // The layout of the machines takes most of the time.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
})
