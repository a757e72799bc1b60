// Builds the page from src/page/app into dist/page (`npm run build:page`). The same sources always give the same files.
import { defineConfig } from 'vite'
import { machineCharts } from '../../../scripts/chart-plugin.js'

export default defineConfig({
  // Relative addresses, because a server may serve the page from any path.
  base: './',
  plugins: [machineCharts()],
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: '../../../dist/page',
    emptyOutDir: true,
    target: 'es2022',
    // No file is inlined, because the content security policy of the page forbids `data:` URLs and inline code.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Without this, Vite warns that the plugin is slow. The layout of the machines takes most of the build.
    rolldownOptions: { checks: { bundlerTimings: false } },
  },
})
