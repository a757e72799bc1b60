/** Renders the page in the browser. */
import { render } from 'preact'
import { createPage, PageContext } from './page-state.js'
import { App } from './shell/app.js'
import './styles/style.css'

const root = document.getElementById('page')
if (root) {
  render(
    <PageContext.Provider value={createPage()}>
      <App />
    </PageContext.Provider>,
    root,
  )
}
