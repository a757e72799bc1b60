/** The features that have a part on the page. Their rows are listed in this order. */
import { limitsPage } from '../features/changed-limits/page.js'
import { detachPage } from '../features/foreground/page.js'
import { historyPage } from '../features/history/page.js'
import { monitorPage } from '../features/monitors/page.js'
import { pausePage } from '../features/pausing/page.js'
import { questionPage } from '../features/questions/page.js'
import { schedulePage } from '../features/schedules/page.js'
import type { AsyncTaskManager } from '../async-tasks/manager.js'
import type { PageFeature } from './page-feature.js'
import type { HostRow } from './wire.js'

const pageFeatures: readonly PageFeature[] = [
  pausePage,
  schedulePage,
  monitorPage,
  detachPage,
  limitsPage,
  questionPage,
  historyPage,
]

export const hostRows = (manager: AsyncTaskManager): HostRow[] =>
  pageFeatures.flatMap(({ rows }) => rows?.(manager) ?? [])

export const ofFeatures = <Field extends Exclude<keyof PageFeature, 'rows'>>(field: Field) =>
  Object.assign({}, ...pageFeatures.map((feature) => feature[field])) as NonNullable<PageFeature[Field]>
