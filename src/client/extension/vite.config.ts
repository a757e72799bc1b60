// `npm run build:extension`: builds the browser extension from src/client/extension into dist/extension, and packs it. The build is reproducible: the same
// sources give the same files.
import { defineConfig } from 'vite'
import { extensionFiles } from '../../../scripts/extension-files.js'

export default defineConfig({
  base: './',
  plugins: [extensionFiles()],
  build: {
    outDir: '../../../dist/extension',
    emptyOutDir: true,
    target: 'chrome125',
    // Not minified, so that users and the web store's reviewers can read the code.
    minify: false,
    assetsInlineLimit: 0,
    modulePreload: false,
    reportCompressedSize: false,
    rolldownOptions: {
      input: ['src/client/extension/background.ts', 'src/client/extension/options/options.html'],
      output: {
        entryFileNames: '[name].js',
        chunkFileNames: 'chunks/[name].js',
        assetFileNames: 'assets/[name][extname]',
      },
      checks: { bundlerTimings: false },
    },
  },
})
