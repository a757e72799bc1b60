import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { sessionsProperty } from './sessions.property.js'

it('K4, K9: the processes of a session lose no result, and no two of them have the same', () =>
  checkProperty('sessions', sessionsProperty()))
