import { it } from 'vitest'
import { checkProperty } from '../support/property.js'
import { conversationsProperty } from './conversations.property.js'

it('H7, H9: conversations never see, wait for, answer, cancel or continue the tasks of each other, and hold up none', () =>
  checkProperty('conversations', conversationsProperty(), { numRuns: 100 }))
