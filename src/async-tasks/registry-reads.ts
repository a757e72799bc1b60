/** The part of a registry that tools, commands, hosts, the page and the MCP server read. To change tasks, they use the manager. */
import type { Observable } from 'rxjs'
import type { RegistryNotification } from '../../machines/change-feed.js'
import type { Ledger } from '../../machines/ledger.js'
import type { History } from '../../machines/history.js'
import type { Slots } from '../../machines/slots.js'
import type { TaskLimits } from '../../machines/task-limits.js'
import type { OnError } from '../isolation/error-report.js'
import type { Clock } from '../system/clock.js'
import type { Feature, FeatureMaker } from './feature.js'
import type { Persistence } from './recovery/persistence.js'
import type { TaskRegistry } from './registry.js'

type SlotReads = Readonly<Pick<Slots, 'countOf' | 'hasRoom' | 'max' | 'queue'>>

export interface RegistryReads extends Pick<TaskRegistry, 'waitReasons' | 'ownerHold' | 'listLines'> {
  readonly clock: Clock
  readonly report: OnError
  readonly isDisposed: boolean
  /** Emits all notifications in order. Completes on disposal. */
  readonly notifications$: Observable<RegistryNotification>
  readonly ledger: Pick<Ledger, 'countOf' | 'isDelivering' | 'isOwing' | 'lease' | 'owed' | 'questions' | 'running'>
  /** The entries of kept tasks, by id. */
  readonly history: Pick<History, 'get'>
  readonly pools: {
    readonly task: SlotReads
    readonly command: SlotReads
    readonly foreground: SlotReads
    readonly all: () => SlotReads[]
  }
  readonly limits: Pick<TaskLimits, 'holdersOf' | 'rateOpensAt' | 'takenOf'>
  /** Undefined without a store. */
  readonly persistence: Pick<Persistence, 'confirmOwner' | 'runOf'> | undefined
  /** Returns a feature of the registry. Creates the feature on the first call. */
  use<F extends Feature>(make: FeatureMaker<TaskRegistry, F>): F
  /** Runs `change`, which may call the manager several times, as one change. Its notifications are delivered when the outermost `batch` ends. */
  batch<T>(change: () => T): T
}
