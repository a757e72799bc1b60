/** Monitors on the page. */
import { nothingSchema } from '../../page/answers.js'
import { MAX_ROWS, onRow, type PageFeature } from '../../page/page-feature.js'
import { sentText } from '../../page/texts.js'

export const monitorPage: PageFeature = {
  rows: (manager) =>
    manager
      .monitors()
      .slice(0, MAX_ROWS)
      .map(({ id, owner, endsAt: at, taskId, file, match, events, description }) => {
        const what = typeof match === 'string' || !('regex' in match) ? match : `/${match.regex}/${match.flags ?? ''}`
        const label = description === undefined ? '' : `${description}: `
        const source = file === undefined ? `task ${taskId}` : `file ${file}`
        const detail = `${id} (${source}), ${events} event(s) - ${label}${sentText(JSON.stringify(what))}`
        return { kind: 'monitors', id, owner, at, detail }
      }),
  rowActions: {
    'monitors/cancel': onRow(nothingSchema, (manager, id) =>
      manager.monitors().some((monitor) => monitor.id === id && monitor.cancel('on the page')),
    ),
  },
}
