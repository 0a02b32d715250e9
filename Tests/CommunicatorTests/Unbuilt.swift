import Testing
import Communicator
